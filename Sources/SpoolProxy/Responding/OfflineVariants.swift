#if Proxy
import Foundation
import HTTPTypes
import Spool
import Synchronization

/// Which variants a master playlist, or representations an MPD, lists while its origin can't be reached: those that play to
/// their end without it, or where none does, those that are stored in part.
///
/// A download has one variant of several: a player that is offline must not choose another. While the origin can be reached,
/// all are listed.
final class OfflineVariants: Sendable {
    private enum Extent { case none, part, whole }

    private let cache: MediaCache
    private let clock: any Clock<Duration>
    private let limits: LookupBudget.Limits
    /// When an origin was last found to be reachable, or not, in seconds since 1970.
    private let known = Mutex(Remembered<String, (isReachable: Bool, second: Int64)>(count: 1000))
    /// For how long that counts.
    private static let memory: Int64 = 15
    /// For how long an origin is waited for.
    private static let patience = Duration.seconds(1)

    init(cache: MediaCache, clock: any Clock<Duration>, limits: LookupBudget.Limits = LookupBudget.Limits()) {
        self.cache = cache
        self.clock = clock
        self.limits = limits
    }

    /// A stored master playlist, as it may be listed now.
    ///
    /// - Parameter found: Where it was found.
    /// - Throws: `CancellationError` if the task is cancelled.
    func playable(
        _ bytes: [UInt8], _ found: OriginURL, _ call: OriginCall, at second: Int64
    ) async throws -> [UInt8] {
        try await cache.runMaintenance { try await self.filtered(bytes, found, call, at: second) }
    }

    private func filtered(
        _ bytes: [UInt8], _ found: OriginURL, _ call: OriginCall, at second: Int64
    ) async throws -> [UInt8] {
        let parsed = try? HLSPlaylist(parsing: bytes, at: found)  // Who rewrites it refuses one that can't be read.
        guard let playlist = parsed, playlist.kind == .master, (2...100).contains(playlist.variants.count)
        else { return bytes }
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        var budget = LookupBudget(limits, clock)
        var stored: [String: MediaResource] = [:]
        for uri in Set(playlist.variants.map(\.uri) + playlist.renditions.compactMap(\.uri)) {
            guard try budget.takes(uri.utf8.count) else { return bytes }
            guard let url = rewriter.url(of: uri) else { continue }
            guard let source = try? call.source(of: url) else { continue }  // What can't be asked for is not stored.
            let media = cache.media(for: source)
            let record = try? await media.storedResource()  // Nor can what can't be looked up be played from there.
            if record?.isComplete == true { stored[uri] = media }
        }
        guard playlist.variants.contains(where: { stored[$0.uri] != nil }), await !isReachable(call, at: second) else {
            return bytes
        }
        var extents: [String: Extent] = [:]
        for (uri, media) in stored {
            guard let url = rewriter.url(of: uri) else { continue }
            extents[uri] = try await extent(of: media, at: url, call, playlist, &budget)
        }
        let best: Extent = playlist.variants.contains { extents[$0.uri] == .whole } ? .whole : .part
        let variants = Set(playlist.variants.map(\.uri))
        return HLSMasterFilter.filtered(bytes, playlist) { uri in
            let extent = extents[uri] ?? .none
            return variants.contains(uri) ? extent == best : extent != .none
        }
    }

    /// Which variants that need more bits per second, by their peak, are stored to their end: by their places in the list.
    ///
    /// - Parameter found: Where the master playlist was found.
    /// - Throws: `CancellationError` if the task is cancelled.
    func storedVariants(
        of bytes: [UInt8], _ found: OriginURL, _ call: OriginCall, above limit: Int64
    ) async throws -> Set<Int> {
        let parsed = try? HLSPlaylist(parsing: bytes, at: found)  // Of one with faults nothing is known.
        guard let playlist = parsed, playlist.kind == .master, playlist.variants.count <= 100,
            playlist.variants.contains(where: { $0.bandwidth > limit })
        else { return [] }
        return try await cache.runMaintenance {
            try await self.wholeVariants(of: playlist, found, call, above: limit)
        }
    }

    private func wholeVariants(
        of playlist: HLSPlaylist, _ found: OriginURL, _ call: OriginCall, above limit: Int64
    ) async throws -> Set<Int> {
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        var budget = LookupBudget(limits, clock)
        var stored: Set<Int> = []
        for (index, variant) in playlist.variants.enumerated() where variant.bandwidth > limit {
            guard let url = rewriter.url(of: variant.uri) else { continue }
            guard let source = try? call.source(of: url) else { continue }  // What can't be asked for is not stored.
            let extent = try await extent(of: cache.media(for: source), at: url, call, playlist, &budget)
            if extent == .whole { stored.insert(index) }
        }
        return stored
    }

    /// A stored MPD, as it may be listed now.
    ///
    /// - Parameter found: Where it was found.
    /// - Throws: `CancellationError` if the task is cancelled.
    func playable(
        mpd bytes: [UInt8], _ found: OriginURL, _ call: OriginCall, at second: Int64
    ) async throws -> [UInt8] {
        try await cache.runMaintenance { try await self.filtered(mpd: bytes, found, call, at: second) }
    }

    private func filtered(
        mpd bytes: [UInt8], _ found: OriginURL, _ call: OriginCall, at second: Int64
    ) async throws -> [UInt8] {
        // A live one is none that can be played without its origin.
        guard let presentation = try? DASHPresentation(parsing: bytes, at: found),  // Who rewrites it refuses it.
            presentation.periods.contains(where: { $0.sets.contains { $0.representations.count > 1 } })
        else { return bytes }
        guard await !isReachable(call, at: second) else { return bytes }
        var budget = LookupBudget(limits, clock)
        var extents: [[[DASHFilter.Extent]]] = []
        for (index, period) in presentation.periods.enumerated() {
            var ofPeriod: [[DASHFilter.Extent]] = []
            for set in period.sets {
                var ofSet: [DASHFilter.Extent] = []
                for representation in set.representations {
                    var files = presentation.files(
                        of: representation, until: nil, period: presentation.duration(of: index), found)
                    ofSet.append(try await extent(of: &files, call, &budget))
                }
                ofPeriod.append(ofSet)
            }
            extents.append(ofPeriod)
        }
        return DASHFilter.filtered(bytes, presentation, extents)
    }

    /// How much is stored of what one representation needs.
    ///
    /// When the budget is used up, a representation without a missing file so far counts as whole. One that has not
    /// been examined counts as partly stored. It therefore stays listed unless another one of its set is whole.
    private func extent(
        of files: inout DASHPresentation.Files, _ call: OriginCall, _ budget: inout LookupBudget
    ) async throws -> DASHFilter.Extent {
        var isAnyStored = false
        var hasSegment = false
        do {
            while let file = try files.next() {
                guard try budget.takes(file.url.target.utf8.count) else { return isAnyStored ? .whole : .start }
                guard let source = try? call.source(of: file.url),  // Without a source, it is not stored.
                    let record = try? await cache.media(for: source).storedResource()  // An error counts as missing.
                else { return hasSegment ? .start : .none }
                let isThere = file.byteRange.map { record.storedRanges.contains($0) } ?? record.isComplete
                // The first bytes of a file that has all segments count as a start.
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

    /// How much of a variant is stored. If the budget is used up, the rules for a representation of an MPD apply.
    private func extent(
        of media: MediaResource, at url: OriginURL, _ call: OriginCall, _ master: HLSPlaylist,
        _ budget: inout LookupBudget
    ) async throws -> Extent {
        do {
            var bytes: [UInt8] = []
            guard try budget.takes(url.target.utf8.count) else { return .part }
            for try await chunk in media.storedReader() {
                guard try budget.takes(chunk.count) else { return .part }
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            }
            let playlist = try HLSPlaylist(parsing: bytes, at: url, importing: master.variables)
            for part in try playlist.downloads(at: url) {
                guard try budget.takes(part.url.target.utf8.count) else { return .whole }
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

    private func isReachable(_ call: OriginCall, at second: Int64) async -> Bool {
        let name = call.url.authority
        if let known = known.withLock({ $0[name] }), second - known.second < Self.memory { return known.isReachable }
        guard let url = call.url.url else { return true }
        var request = UpstreamRequest(url: url, headerFields: call.fields)
        request.method = .head
        let isReached = try? await TimeLimit.value(within: Self.patience, on: clock) { [cache, request] in
            do {
                _ = try await cache.upstream.open(request)
                return true
            } catch let error as UpstreamError {
                return !error.isTransient
            }
        }
        // It fails if the client closes the connection.
        let isReachable = isReached ?? false
        known.withLock { $0.note((isReachable, second), for: name, bytes: name.utf8.count) }
        return isReachable
    }
}
#endif
