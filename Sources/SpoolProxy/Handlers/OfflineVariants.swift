#if Proxy
import Foundation
import HTTPTypes
import Spool
import SpoolStreams
import Synchronization

/// The variants of a master playlist, and the representations of an MPD, that can be played without their origin.
///
/// These are the completely stored variants or, if there are none, the partly stored variants. A download contains only
/// one of several variants, and a player that is offline must not choose another variant. While the origin can be
/// reached, all variants are listed.
final class OfflineVariants: Sendable {
    private enum Extent { case none, part, whole }

    private let cache: MediaCache
    private let clock: any Clock<Duration>
    private let limits: LookupBudget.Limits
    /// The result of the last check of each origin and URL, with its time in seconds since 1970.
    private let known = Mutex(BoundedTable<String, (isReachable: Bool, second: Int64)>(count: 1000))
    /// The origins for which a late check is still pending. There is at most one such check per origin.
    private let lateOrigins = Mutex<Set<String>>([])
    private static let lateLimit = 64
    /// The time for which a result is used, in seconds.
    private static let memory: Int64 = 15
    /// The maximum time to wait for an origin.
    private static let timeout = Duration.seconds(1)

    init(cache: MediaCache, clock: any Clock<Duration>, limits: LookupBudget.Limits = LookupBudget.Limits()) {
        self.cache = cache
        self.clock = clock
        self.limits = limits
    }

    /// Returns a stored playlist with the variants that can be played now. A media playlist, or a playlist with errors,
    /// is not changed.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func playable(_ document: HLSDocument, _ call: OutgoingRequest, at second: Int64) async throws -> HLSDocument {
        try await cache.runMaintenance { try await self.filtered(document, call, at: second) }
    }

    private func filtered(
        _ document: HLSDocument, _ call: OutgoingRequest, at second: Int64
    ) async throws -> HLSDocument {
        guard let playlist = document.playlist, playlist.kind == .master,
            (2...100).contains(playlist.variants.count)
        else { return document }
        let rewriter = ReferenceRewriter(finalURL: document.url)
        var budget = LookupBudget(limits, clock)
        var stored: [String: MediaResource] = [:]
        for uri in Set(playlist.variants.map(\.uri) + playlist.renditions.compactMap(\.uri)) {
            guard try budget.allows(uri.utf8.count) else { return document }
            guard let url = rewriter.url(of: uri) else { continue }
            guard let source = try? call.source(of: url) else { continue }  // A URL without a source is not stored.
            let media = cache.media(for: source)
            let record = try? await media.storedResource()  // If the lookup fails, the media counts as missing.
            if record?.isComplete == true { stored[uri] = media }
        }
        guard playlist.variants.contains(where: { stored[$0.uri] != nil }),
            await !isReachable(call.url, call.fields, at: second)
        else { return document }
        var extents: [String: Extent] = [:]
        for (uri, media) in stored {
            guard let url = rewriter.url(of: uri) else { continue }
            extents[uri] = try await extent(of: media, at: url, call, playlist, &budget)
        }
        let best: Extent = playlist.variants.contains { extents[$0.uri] == .whole } ? .whole : .part
        let variants = Set(playlist.variants.map(\.uri))
        var document = document
        document.filter { uri in
            let extent = extents[uri] ?? .none
            return variants.contains(uri) ? extent == best : extent != .none
        }
        return document
    }

    /// Returns the indices of the completely stored variants whose peak bit rate exceeds a limit.
    ///
    /// - Parameter limit: The limit, in bits per second.
    /// - Throws: `CancellationError` if the task is cancelled.
    func storedVariants(of document: HLSDocument, _ call: OutgoingRequest, above limit: Int64) async throws -> Set<Int>
    {
        guard let playlist = document.playlist, playlist.kind == .master, playlist.variants.count <= 100,
            playlist.variants.contains(where: { $0.bandwidth > limit })
        else { return [] }
        return try await cache.runMaintenance {
            try await self.wholeVariants(of: playlist, document.url, call, above: limit)
        }
    }

    private func wholeVariants(
        of playlist: HLSPlaylist, _ found: OriginURL, _ call: OutgoingRequest, above limit: Int64
    ) async throws -> Set<Int> {
        let rewriter = ReferenceRewriter(finalURL: found)
        var budget = LookupBudget(limits, clock)
        var stored: Set<Int> = []
        for (index, variant) in playlist.variants.enumerated() where variant.bandwidth > limit {
            guard let url = rewriter.url(of: variant.uri) else { continue }
            guard let source = try? call.source(of: url) else { continue }  // A URL without a source is not stored.
            let extent = try await extent(of: cache.media(for: source), at: url, call, playlist, &budget)
            if extent == .whole { stored.insert(index) }
        }
        return stored
    }

    /// Returns a stored MPD with the representations that can be played now. A live MPD is not changed.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func playable(_ document: DASHDocument, _ call: OutgoingRequest, at second: Int64) async throws -> DASHDocument {
        try await cache.runMaintenance { try await self.filtered(document, call, at: second) }
    }

    private func filtered(
        _ document: DASHDocument, _ call: OutgoingRequest, at second: Int64
    ) async throws -> DASHDocument {
        // A live stream, or a stream with too many entries, cannot be played without its origin.
        guard let presentation = try? document.presentation(),
            presentation.periods.contains(where: { $0.sets.contains { $0.representations.count > 1 } })
        else { return document }
        guard await !isReachable(call.url, call.fields, at: second) else { return document }
        var budget = LookupBudget(limits, clock)
        var extents: [[[DASHDocument.Extent]]] = []
        for (index, period) in presentation.periods.enumerated() {
            var ofPeriod: [[DASHDocument.Extent]] = []
            for set in period.sets {
                var ofSet: [DASHDocument.Extent] = []
                for representation in set.representations {
                    var files = presentation.files(
                        of: representation, until: nil, period: presentation.duration(of: index), document.url)
                    ofSet.append(try await extent(of: &files, call, &budget))
                }
                ofPeriod.append(ofSet)
            }
            extents.append(ofPeriod)
        }
        var document = document
        document.filter(extents)
        return document
    }

    /// Returns whether a representation is stored completely, partly or not at all.
    ///
    /// When the budget is used up, a representation for which no missing file has been found counts as whole. A
    /// representation that has not been examined counts as partly stored. Therefore, it remains listed unless another
    /// representation in its set counts as whole.
    private func extent(
        of files: inout DASHPresentation.Files, _ call: OutgoingRequest, _ budget: inout LookupBudget
    ) async throws -> DASHDocument.Extent {
        var isAnyStored = false
        var hasSegment = false
        do {
            while let file = try files.next() {
                guard try budget.allows(file.url.target.utf8.count) else { return isAnyStored ? .whole : .start }
                guard let source = try? call.source(of: file.url),  // A URL without a source is not stored.
                    let record = try? await cache.media(for: source).storedResource()  // An error counts as missing.
                else { return hasSegment ? .start : .none }
                let isThere = file.byteRange.map { record.storedRanges.contains($0) } ?? record.isComplete
                // If one file contains all segments, its first bytes count as the start of the representation.
                let isBegun = file.isSegment && file.byteRange == nil && record.storedRanges.contains(0)
                guard isThere else { return hasSegment || isBegun ? .start : .none }
                isAnyStored = true
                if file.isSegment { hasSegment = true }
            }
        } catch is ManifestError {
            return .none  // If the segments are not known, they can't be played.
        }
        return hasSegment ? .whole : .none
    }

    /// Returns whether a variant is stored completely, partly or not at all. If the budget is used up, the same rules
    /// apply as for a representation of an MPD.
    private func extent(
        of media: MediaResource, at url: OriginURL, _ call: OutgoingRequest, _ master: HLSPlaylist,
        _ budget: inout LookupBudget
    ) async throws -> Extent {
        do {
            var bytes: [UInt8] = []
            guard try budget.allows(url.target.utf8.count) else { return .part }
            for try await chunk in media.storedReader() {
                guard try budget.allows(chunk.count) else { return .part }
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            }
            let playlist = try HLSPlaylist(parsing: bytes, at: url, importing: master.variables)
            for part in try playlist.downloads(at: url) {
                guard try budget.allows(part.url.target.utf8.count) else { return .whole }
                let ranges = try await cache.media(for: call.source(of: part.url)).storedResource()
                guard let ranges else { return .part }
                let isThere = part.byteRange.map { ranges.storedRanges.contains($0) } ?? ranges.isComplete
                guard isThere else { return .part }
            }
            return .whole
        } catch let error as CancellationError {
            throw error
        } catch {
            // A playlist that is not stored, or is live, can't be played without its origin.
            return .none
        }
    }

    /// Returns whether the origin of a manifest can be reached, according to a `HEAD` request.
    ///
    /// A response or a failed connection applies to the whole origin. A late response applies only to the same
    /// URL and fields, because an origin may need a long time for one of its resources.
    ///
    /// - Parameter fields: The header fields of a request for the manifest.
    func isReachable(_ manifest: OriginURL, _ fields: HTTPFields, at second: Int64) async -> Bool {
        guard let url = manifest.url else { return true }
        let origin = "\(manifest.scheme.rawValue)://\(manifest.authority)"
        // The origin may respond in time to requests with other header fields.
        let name = "\(url.absoluteString) \(fields.requestHash)"
        if let isReachable = lastResult(for: [origin, name], at: second) { return isReachable }
        var request = UpstreamRequest(url: url, headerFields: fields)
        request.method = .head
        let check = { @Sendable [cache, request] in
            let isReached: Bool
            do {
                _ = try await cache.relay(request)
                isReached = true
            } catch let error as UpstreamError {
                // An origin that closes the connection can be reached.
                isReached = !error.isTransient || error.code == .connectionLost
            }
            self.note(isReached, for: origin, at: second)
            return isReached
        }
        let outcome = try? await TimeLimit.run(within: Self.timeout, on: clock, check)  // Fails if the client has left.
        switch outcome {
        case .value(let isReached): return isReached
        case .late(let check):
            note(false, for: name, at: second)
            continueLate(check, of: origin)
            return false
        case nil: return false
        }
    }

    /// Lets a late check continue in the background, so that it can record its result. Only one check per origin
    /// continues, and it is cancelled after the time in `memory`.
    private func continueLate(_ check: Task<Bool, any Error>, of origin: String) {
        let isFirst = lateOrigins.withLock { $0.count < Self.lateLimit && $0.insert(origin).inserted }
        guard isFirst else { return check.cancel() }
        Task { [clock] in
            // The check itself records its result. An error is not a result.
            _ = try? await TimeLimit.value(within: .seconds(Self.memory), on: clock) {
                try await withTaskCancellationHandler {
                    try await check.value
                } onCancel: {
                    check.cancel()
                }
            }
            _ = lateOrigins.withLock { $0.remove(origin) }
        }
    }

    private func lastResult(for names: [String], at second: Int64) -> Bool? {
        known.withLock { known in
            let results = names.compactMap { known[$0] }.filter { second - $0.second < Self.memory }
            return results.isEmpty ? nil : results.contains { $0.isReachable }
        }
    }

    private func note(_ isReachable: Bool, for name: String, at second: Int64) {
        known.withLock { known in
            // A late result does not replace the result of a later check.
            guard known[name]?.second ?? second <= second else { return }
            known.record((isReachable, second), for: name, bytes: name.utf8.count)
        }
    }
}
#endif
