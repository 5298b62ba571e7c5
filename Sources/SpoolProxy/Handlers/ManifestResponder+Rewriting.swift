#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import Spool
import SpoolHTTP
import SpoolStreams

/// The rewriting of received manifests. This extension does not send them.
extension ManifestResponder {
    /// The result of rewriting a manifest.
    struct Rewritten {
        var bytes: [UInt8]
        var lifetime: ManifestLifetime
        /// Whether later requests for the same version produce the same result.
        var isRepeatable = false
        /// The URLs of the keys that the manifest references.
        var keys: [OriginURL] = []
        /// One URL from each other origin that the manifest references.
        var named: [OriginURL] = []
        /// The tag for ``StreamKnowledge/hasMembers(of:tag:)``, or `nil` if no URLs are recorded.
        var membersTag: String?
        /// The entity tag of the result, or `nil` for the bytes of the origin.
        var entityTag: EntityTag?
    }

    /// Rewrites a manifest, on a maintenance thread if the manifest is large.
    ///
    /// - Returns: The result, or `nil` if the document is not a manifest and players must receive it unchanged.
    /// - Throws: `RequestFailure` with status 502 if the manifest can't be used; `CancellationError` if the task is
    ///   cancelled.
    func rewrite(_ received: Received, _ kind: ManifestKind, _ call: OutgoingRequest) async throws -> Rewritten? {
        let rewrite = { @Sendable () async throws -> Rewritten? in
            guard !kind.isPlain(received.bytes) else { return nil }
            var result: Rewritten
            switch kind {
            case .hls: result = try await playlist(received, call)
            case .dash: result = try await mpd(received, call)
            case .dashElement: result = remoteElement(received, call)
            }
            if !call.isForOperator {
                let hash = CacheKey(String(decoding: result.bytes, as: UTF8.self)).hash
                result.entityTag = EntityTag(value: "spool-" + hash.prefix(32))
            }
            return result
        }
        do {
            guard received.bytes.count > Self.quickBytes || received.estimatedURLBytes > Self.quickURLBytes else {
                return try await rewrite()
            }
            return try await largeManifests.run { try await cache.runMaintenance(rewrite) }
        } catch let error as ManifestError {
            throw RequestFailure(502, "the manifest can't be used: \(error)")
        }
    }

    /// The body of a response that bypasses the cache.
    enum BypassBody: Sendable {
        /// A rewritten manifest, or a whole document that is not a manifest although its first bytes allow it. The
        /// second value is the memory that it occupies.
        case manifest([UInt8], ManifestMemory.Share)
        /// The unchanged body of any other response.
        case other(UpstreamBody)
    }

    /// Rewrites the body of a response that bypasses the cache, if the body is a manifest.
    ///
    /// - Parameter key: The key of the requested resource.
    /// - Throws: `RequestFailure` with status 502 if the manifest can't be rewritten, and errors from reading the body.
    func rewritten(_ response: UpstreamResponse, _ call: OutgoingRequest, key: CacheKey) async throws -> BypassBody {
        let (prefix, body) = try await response.body.readingStart(
            ofLength: ManifestKind.prefixLength, while: ManifestKind.isPossible)
        guard ManifestKind.isPossible(prefix: prefix), let kind = ManifestKind(prefix: prefix) else {
            return .other(body)
        }
        let share = ManifestMemory.Share(of: memory)
        var bytes: [UInt8] = []
        for try await chunk in body {
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            try share.resize(to: bytes.count)
            try Self.checkSize(bytes.count)
        }
        let url = (try? OriginURL(response.url.absoluteString)) ?? call.url  // A URL that can be requested is valid.
        let fields = response.head.headerFields
        let received = Received(
            bytes: bytes, url: url, key: key, version: fields[.eTag] ?? fields[.lastModified] ?? "", isFromStore: false)
        let result = try await rewrite(received, kind, call)
        try share.resize(to: result?.bytes.count ?? bytes.count)
        return .manifest(result?.bytes ?? bytes, share)
    }

    /// Checks the size of a manifest.
    ///
    /// - Throws: `RequestFailure` with status 502 if the manifest is too large.
    static func checkSize(_ count: Int) throws(RequestFailure) {
        guard count <= HLSPlaylist.maximumBytes else {
            throw RequestFailure(502, "the manifest is too large (limit: \(HLSPlaylist.maximumBytes) bytes)")
        }
    }

    /// A manifest as the origin sent it.
    struct Received {
        let bytes: [UInt8]
        /// The URL of the manifest, after redirects.
        let url: OriginURL
        let key: CacheKey
        /// The validator of the manifest, or an empty string.
        let version: String
        /// Whether the manifest is from the cache, and the origin did not confirm it for this request.
        let isFromStore: Bool

        /// The estimated size of all absolute URLs, in bytes: one URL in each line or element.
        var estimatedURLBytes: Int {
            let count = bytes.reduce(1) { $0 + ($1 == UInt8(ascii: "\n") || $1 == UInt8(ascii: "<") ? 1 : 0) }
            return count * url.description.utf8.count
        }
    }

    /// Filters and rewrites a playlist, and records the information in it that later requests need.
    ///
    /// - Throws: ``ManifestError``; `CancellationError` if the task is cancelled.
    func playlist(
        _ received: Received, _ call: OutgoingRequest
    ) async throws -> Rewritten {
        let variables = knowledge.variables(for: call.url, call.fields)
        var document = try HLSDocument(parsing: received.bytes, at: received.url, importing: variables.values)
        if received.isFromStore, !call.isForOperator {
            document = try await offline.playable(document, call, at: date.second)
        }
        // Keys are recorded before the client can request them.
        let keys = document.keyAddresses
        knowledge.record(keys: keys)
        if let maximumBitRate, !call.isForOperator {
            let stored = try await offline.storedVariants(of: document, call, above: maximumBitRate)
            document.limitBitRate(to: maximumBitRate, keeping: stored)
        }
        let named = NamedOrigins(call.url, knowledge)
        let text =
            call.isForOperator
            ? received.bytes
            : try document.rewritten(
                requestedURL: call.url, removesSteering: call.mustNotBeSteered, isMoved: call.isMoved,
                servesAllOrigins: !call.isReverse, withholding: variables.withheld,
                proxied: { named.note($0, proxied: call.proxied) })
        guard let playlist = document.playlist else { return Rewritten(bytes: text, lifetime: .none) }
        let tag = "\(document.byteCount) \(received.version)"
        knowledge.record(
            playlist, requested: call.url, call.fields, found: document.url, key: received.key, tag: tag)
        recordNeeds(playlist, of: call, found: document.url)
        return Rewritten(
            bytes: text, lifetime: playlist.lifetime,
            isRepeatable: playlist.kind == .media && playlist.lifetime == .unchanging && variables.values.isEmpty,
            keys: keys, named: named.urls, membersTag: tag)
    }

    /// Filters and rewrites an MPD, and records the information in it that later requests need.
    ///
    /// - Throws: ``ManifestError``; `CancellationError` if the task is cancelled.
    func mpd(_ received: Received, _ call: OutgoingRequest) async throws -> Rewritten {
        var document = try DASHDocument(parsing: received.bytes, at: received.url)
        if received.isFromStore, !call.isForOperator {
            document = try await offline.playable(document, call, at: date.second)
        }
        let tag = "\(document.byteCount) \(received.version)"
        if !document.isDynamic { knowledge.record(document, requested: call.url, key: received.key, tag: tag) }
        guard !call.isForOperator else { return Rewritten(bytes: received.bytes, lifetime: document.lifetime) }
        let named = NamedOrigins(call.url, knowledge)
        let text = try document.rewritten(
            requestedURL: call.url, removesSteering: call.mustNotBeSteered, isMoved: call.isMoved,
            servesAllOrigins: !call.isReverse, proxied: { named.note($0, proxied: call.proxied) })
        let isWhole = received.isFromStore ? await offline.isReachable(call.url, call.fields, at: date.second) : true
        return Rewritten(
            bytes: text, lifetime: document.lifetime, isRepeatable: isWhole && !document.isDynamic, named: named.urls,
            membersTag: document.isDynamic ? nil : tag)
    }

    /// Rewrites an MPD element that is in a separate document. The client resolves its relative references
    /// against the MPD, so they stay unchanged.
    func remoteElement(_ received: Received, _ call: OutgoingRequest) -> Rewritten {
        let unchanged = Rewritten(bytes: received.bytes, lifetime: .unstated)
        guard !call.isForOperator else { return unchanged }
        do {
            let named = NamedOrigins(call.url, knowledge)
            let document = try DASHDocument(parsingRemoteElement: received.bytes, at: received.url)
            let text = try document.rewritten(
                servesAllOrigins: !call.isReverse, proxied: { named.note($0, proxied: call.proxied) })
            return Rewritten(bytes: text, lifetime: .unstated)
        } catch {
            // A document that can't be read, such as one with several root elements, is sent unchanged.
            return unchanged
        }
    }

    /// Records the other origins of a stream in the cache, even for a live stream.
    private func recordNeeds(_ playlist: HLSPlaylist, of call: OutgoingRequest, found: OriginURL) {
        guard notesNeeds, let url = call.url.url else { return }
        var others = [found.url].compactMap(\.self)
        var seen: Set<Substring> = []
        // Relative references point to the playlist's own origin.
        for uri in playlist.uris where uri.prefix(8).contains("://") {
            let authority = uri[..<(uri.dropFirst(8).firstIndex { "/?#".contains($0) } ?? uri.endIndex)]
            if seen.count == 64 { break }  // The cache does not record more.
            if seen.insert(authority).inserted, let other = URL(string: String(authority)) { others.append(other) }
        }
        cache.recordNeeds(others, for: url)
    }
}

/// A recorder of the origins that a manifest references, except its own origin.
private final class NamedOrigins {
    /// The first URL of each other origin that is recorded.
    private(set) var urls: [OriginURL] = []
    private let manifest: OriginURL
    private let knowledge: StreamKnowledge
    private var last: OriginURL?
    private var origins: Set<String> = []

    /// The maximum number of recorded origins. Without a limit, one manifest could displace the origins of all others.
    private static let limit = 200

    init(_ manifest: OriginURL, _ knowledge: StreamKnowledge) {
        self.manifest = manifest
        self.knowledge = knowledge
    }

    /// Records the origin of a URL, and returns the result of `proxied`.
    func note(_ url: OriginURL, proxied: (OriginURL) -> String) -> String {
        // Most URLs in a manifest are from the same origin.
        if last.map({ !$0.isSameOrigin(as: url) }) ?? true {
            last = url
            if !url.isSameOrigin(as: manifest) { record(url) }
        }
        return proxied(url)
    }

    private func record(_ url: OriginURL) {
        guard origins.count < Self.limit else { return knowledge.recordMoreOrigins(namedBy: manifest) }
        guard origins.insert("\(url.scheme.rawValue)://\(url.authority)").inserted else { return }
        urls.append(url)
        knowledge.record(url, namedBy: manifest)
    }
}
#endif
