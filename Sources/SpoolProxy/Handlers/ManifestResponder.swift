#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolStreams

/// The responder for HLS playlists and MPDs. It changes their references so that they point to the server.
///
/// A manifest is recognized by its first bytes. If these bytes are late, its type or its path must identify it. It is
/// fetched completely, parsed once, and rewritten. The result is sent with its own length and entity tag. A live
/// manifest is stored only until players request it again. The rewritten bytes of a large manifest that does not change
/// are remembered.
struct ManifestResponder: Sendable {
    /// A manifest, ready to be sent.
    struct Manifest: Sendable {
        /// The origin's response, with the length and the validator of the rewritten bytes.
        var response: StoredResponse
        var bytes: ByteBuffer
        /// The memory that the bytes occupy. It is counted until the response has been sent.
        let memory: ManifestMemory.Share
    }

    let cache: MediaCache
    let knowledge: StreamKnowledge
    let offline: OfflineVariants
    let date: DateText
    let clock: any Clock<Duration>
    /// See ``ProxyConfiguration/maximumBitRate``.
    let maximumBitRate: Int64?
    /// Whether the cache records the origins of a stream.
    let notesNeeds: Bool
    /// The memory for all manifests.
    var memory = ManifestMemory()
    private let rewrittenManifests = RewrittenManifests()
    private let largeManifests = LargeManifestTurns()

    /// Returns the manifest in a resource, or `nil` if the resource is not a manifest.
    ///
    /// - Parameters:
    ///   - opened: The response headers of the current version.
    ///   - mayRead: Whether to read the first bytes even if neither the type nor the path indicates a manifest. The
    ///     default is `true`.
    /// - Throws: `RequestFailure` with status 502 if the manifest cannot be rewritten, and errors from reading.
    ///   `CacheError` with code `.resourceChanged` if another version has replaced the one that `opened` describes.
    func manifest(
        of media: MediaResource, _ opened: OpenedResponse, for request: RequestHead, _ call: OutgoingRequest,
        mayRead: Bool = true
    ) async throws -> Manifest? {
        let response = opened.response
        guard response.status == 200, Self.mayBeManifest(response, at: call.url) else { return nil }
        if ResourceVersion.isCompressed(response.fields), Self.indicatesManifest(response.fields, at: call.url) {
            // The origin ignored the requested encoding. A compressed playlist is not parsed, so whether it is live is
            // unknown.
            await limit(.none, of: media)
            return nil
        }
        // A version without a validator has no name, and its kind is not recorded.
        let name = Self.name(of: response, media)
        let kind: ManifestKind?
        if let name, let known = knowledge.kind(ofVersion: name) {
            kind = known
        } else {
            let isNamed = Self.indicatesManifest(response.fields, at: call.url)
            guard isNamed || mayRead && Self.isCheapToRead(request, response) else { return nil }
            guard let found = try await readStart(media, response, within: isNamed ? nil : Self.inspectionTimeout)
            else {
                return nil
            }
            kind = found
            if let name { knowledge.record(kind, ofVersion: name) }
        }
        guard let kind else { return nil }
        let wasAsked = opened.source != .hit && opened.source != .stale
        let manifest = try await rewritten(kind, media, opened, call, isOriginThere: wasAsked)
        if manifest == nil, let name { knowledge.record(nil, ofVersion: name) }
        return manifest
    }

    /// Returns a response to `HEAD` without the fields that differ for a rewritten manifest, such as its length.
    func withoutLength(_ response: Response, of call: OutgoingRequest) -> Response {
        guard Self.indicatesManifest(response.head.fields, at: call.url) else { return response }
        var response = response
        response.lengthForHead = nil
        response.head.fields = EndToEndFields.withoutDigests(response.head.fields)
        for name in [HTTPField.Name.eTag, .lastModified, .acceptRanges] {
            response.head.fields[name] = nil
        }
        return response
    }

    /// Returns a redirect to the origin if the client would receive a manifest that is not rewritten, such as a
    /// compressed one.
    ///
    /// In forward mode, the server's URLs contain the name of the origin. References and steering servers in an
    /// unchanged manifest could make a player send these URLs, with the server's token, to other hosts. If the server
    /// has its own origin, the operator trusts that origin.
    ///
    /// - Returns: `nil` if the client may receive the response.
    /// - Throws: `RequestFailure` with status 502 if the client can't request the origin's URL itself.
    func redirect(
        _ head: ResponseHead, to request: RequestHead, _ call: OutgoingRequest
    ) throws(RequestFailure) -> Response? {
        guard request.method == .get, !call.isForOperator, !call.isReverse, (200..<300).contains(head.status),
            Self.indicatesManifest(head.fields, at: call.url)
        else { return nil }
        guard call.presentation == nil else {
            throw RequestFailure(502, "\(call.url.nameForMessages): the manifest can't be rewritten").namingOrigin()
        }
        return Response(ResponseHead(307, [.location: call.url.description, .cacheControl: "no-store"]))
    }

    /// Returns the name of a version for ``StreamKnowledge``, or `nil` if the version has no validator.
    private static func name(of response: StoredResponse, _ media: MediaResource) -> String? {
        (response.validator.entityTag?.text ?? response.validator.lastModified).map { media.key.hash + $0 }
    }

    /// Returns whether a version may be a manifest. The method does not read the version.
    func mayBeManifest(_ response: StoredResponse, of media: MediaResource, at url: OriginURL) -> Bool {
        guard response.status == 200, Self.mayBeManifest(response, at: url) else { return false }
        return Self.name(of: response, media).map { knowledge.kind(ofVersion: $0) != .some(nil) } ?? true
    }

    /// The maximum size of a manifest that is rewritten on the threads that serve players, in bytes. Rewriting a larger
    /// one there would delay players.
    private static let quickBytes = 256 << 10
    /// The maximum estimated size of all absolute URLs in such a manifest, in bytes.
    private static let quickURLBytes = 4 << 20

    /// The maximum size of small media, in bytes. The first bytes of small media are read even if they are not
    /// requested, or if the type is that of a segment.
    private static let smallBytes: Int64 = 256 << 10

    /// Returns whether a resource with this type, path and length may be a manifest.
    private static func mayBeManifest(_ response: StoredResponse, at url: OriginURL) -> Bool {
        if let length = response.length, length > HLSPlaylist.maximumBytes || length < 7 { return false }
        guard let type = response.fields[.contentType]?.lowercased() else { return true }
        if indicatesManifest(response.fields, at: url) { return true }
        // Servers often send a playlist with the type of its segments.
        if type.hasPrefix("video/") || type.hasPrefix("audio/") {
            return response.length.map { $0 <= smallBytes } ?? false
        }
        if type.hasPrefix("image/") { return response.length ?? 0 <= smallBytes }
        return !neverManifests.contains { type.hasPrefix($0) } && !type.contains("json")
    }

    /// The prefixes of media types that manifests never have. The first bytes of an event stream may be late.
    private static let neverManifests = ["font/", "text/event-stream"]
    /// The time limit for the first byte of a resource, if neither its type nor its path identifies it as a manifest.
    private static let inspectionTimeout = Duration.seconds(2)

    /// Returns whether the type or the path indicates a manifest.
    static func indicatesManifest(_ fields: HTTPFields, at url: OriginURL) -> Bool {
        fields.indicateManifest(at: url.path)
    }

    /// Returns whether reading the first bytes is cheap: the client requests them, or the resource is small.
    private static func isCheapToRead(_ request: RequestHead, _ response: StoredResponse) -> Bool {
        guard let text = request.fields["range"], !text.hasPrefix("bytes=0-") else { return true }
        return response.length ?? .max <= smallBytes
    }

    /// Reads the first bytes.
    ///
    /// - Parameter limit: The time limit for the first byte, or `nil` if there is none.
    /// - Returns: The kind, `.some(nil)` if the bytes are not a manifest, or `nil` if the first byte is late.
    private func readStart(
        _ media: MediaResource, _ response: StoredResponse, within limit: Duration?
    ) async throws -> ManifestKind?? {
        var prefix: [UInt8] = []
        // If another version has become current, these bytes only determine the kind; see ``reader(of:in:)``.
        let reader = media.readerOfOpenVersion(.bytes(0..<Int64(ManifestKind.prefixLength)))
        defer { reader.cancel() }
        var next: MediaChunk?
        if let limit {
            let first = try await TimeLimit.value(within: limit, on: clock, executor: media.readingExecutor) {
                try await reader.next()
            }
            guard let first else { return nil }
            next = first
        } else {
            next = try await reader.next()
        }
        while let chunk = next {
            chunk.withUnsafeBytes { prefix.append(contentsOf: $0) }
            // The first bytes are usually sufficient. More bytes may never be received.
            guard ManifestKind.isPossible(prefix: prefix) else { return .some(nil) }
            next = try await reader.next()
        }
        return .some(ManifestKind(prefix: prefix, contentType: response.fields[.contentType]))
    }

    /// Returns a reader of the version that the client may receive.
    ///
    /// - Throws: `CacheError` with code `.resourceChanged` if another request's response has replaced that version. The
    ///   client may not be allowed to receive that response (RFC 9111 §4).
    private func reader(of opened: OpenedResponse, in media: MediaResource) async throws -> MediaReader {
        let reader = media.readerOfOpenVersion()
        guard try await reader.response().version == opened.version else {
            reader.cancel()
            throw CacheError(
                .resourceChanged, "\(media.source.redactedURL): the manifest changed before it was read", key: media.key
            )
        }
        return reader
    }

    /// Returns the remembered result of rewriting the same bytes, and records the information that later requests need.
    private func earlierResult(_ received: Received, _ call: OutgoingRequest) async -> RewrittenManifests.Entry? {
        // An operator's command receives the origin's bytes. If the playlist imports variables, their values may have
        // changed.
        guard !call.isForOperator, knowledge.variables(for: call.url, call.fields).values.isEmpty,
            let entry = rewrittenManifests.entry(for: received.bytes, at: received.url, call)
        else { return nil }
        // If the URLs of its files were forgotten, the manifest is parsed again.
        if let tag = entry.membersTag, !knowledge.hasMembers(of: received.key, tag: tag) { return nil }
        // While the origin is unreachable, a player must not choose a representation that is not stored.
        if entry.kind == .dash, await !offline.isReachable(call.url, call.fields, at: date.second) { return nil }
        knowledge.record(keys: entry.keys)
        for url in entry.named { knowledge.record(url, namedBy: call.url) }
        return entry
    }

    /// Returns a rewritten manifest with its own length and entity tag.
    private func manifest(_ entry: RewrittenManifests.Entry, _ received: StoredResponse) -> Manifest {
        var response = received
        response.length = Int64(entry.bytes.readableBytes)
        response.validator = Validator(entityTag: entry.tag)
        response.fields = EndToEndFields.withoutDigests(response.fields)
        response.fields[.eTag] = entry.tag?.text
        response.fields[.lastModified] = nil
        return Manifest(response: response, bytes: entry.bytes, memory: entry.memory)
    }

    /// Reads a whole manifest and rewrites it. Returns `nil` if it is a plain list, which players must receive unchanged.
    private func rewritten(
        _ kind: ManifestKind, _ media: MediaResource, _ opened: OpenedResponse, _ call: OutgoingRequest,
        isOriginThere: Bool
    ) async throws -> Manifest? {
        let response = opened.response
        let reader = try await reader(of: opened, in: media)
        var bytes: [UInt8] = []
        let share = ManifestMemory.Share(of: memory)
        for try await chunk in reader {
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            try share.resize(to: bytes.count)
            guard bytes.count <= HLSPlaylist.maximumBytes else {
                throw RequestFailure(502, "the manifest is too large (limit: \(HLSPlaylist.maximumBytes) bytes)")
            }
        }
        let received = Received(
            bytes: bytes, url: Self.found(call, response), key: media.key,
            version: response.validator.entityTag?.text ?? response.validator.lastModified ?? "",
            isFromStore: !isOriginThere)
        if let known = await earlierResult(received, call) { return manifest(known, response) }
        let rewritten: Rewritten?
        do {
            let rewrite = { @Sendable () async throws -> Rewritten? in
                switch kind {
                case .hls: try await playlist(received, call)
                case .dash: try await mpd(received, call)
                case .dashElement: remoteElement(received, call)
                }
            }
            if received.bytes.count > Self.quickBytes || received.estimatedURLBytes > Self.quickURLBytes {
                rewritten = try await largeManifests.run { try await cache.runMaintenance(rewrite) }
            } else {
                rewritten = try await rewrite()
            }
        } catch let error as ManifestError {
            throw RequestFailure(502, "the manifest can't be used: \(error)")
        }
        guard let result = rewritten else { return nil }
        await limit(result.lifetime, of: media)
        try share.resize(to: result.bytes.count)
        let sent = ByteBuffer(bytes: result.bytes)
        guard !call.isForOperator else { return Manifest(response: response, bytes: sent, memory: share) }
        let tag = EntityTag(value: "spool-" + CacheKey(String(decoding: result.bytes, as: UTF8.self)).hash.prefix(32))
        let entry = RewrittenManifests.Entry(
            kind: kind, received: received.bytes, found: received.url, bytes: sent, tag: tag, keys: result.keys,
            named: result.named, membersTag: result.membersTag, memory: share)
        // If too little memory is left, the result is not remembered.
        if result.isRepeatable, received.bytes.count >= RewrittenManifests.minimumBytes,
            share.resizeIfPossible(to: result.bytes.count + received.bytes.count),
            !rewrittenManifests.note(entry, for: call)
        {
            try share.resize(to: result.bytes.count)
        }
        return manifest(entry, response)
    }

    /// The result of rewriting a manifest.
    private struct Rewritten {
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
    }

    /// A manifest as the origin sent it.
    private struct Received {
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

    /// Filters and rewrites a playlist, and records the information in it that later requests need. Returns `nil` for a
    /// plain list of files or stations.
    ///
    /// - Throws: ``ManifestError``; `CancellationError` if the task is cancelled.
    private func playlist(
        _ received: Received, _ call: OutgoingRequest
    ) async throws -> Rewritten? {
        guard !ManifestKind.isPlainList(received.bytes) else { return nil }
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
    private func mpd(_ received: Received, _ call: OutgoingRequest) async throws -> Rewritten {
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
    private func remoteElement(_ received: Received, _ call: OutgoingRequest) -> Rewritten {
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

    /// Returns the URL of a manifest, after redirects.
    private static func found(_ call: OutgoingRequest, _ response: StoredResponse) -> OriginURL {
        // The final URL is stored without its query. Unless there was a redirect, the query is the requested one.
        guard let url = response.url, let final = try? OriginURL(url),  // Without a final URL, there was no redirect.
            !final.isSameOrigin(as: call.url) || final.path != call.url.path
        else { return call.url }
        return final
    }

    /// Limits the time for which a live manifest is stored.
    private func limit(_ lifetime: ManifestLifetime, of media: MediaResource) async {
        let seconds: Double
        switch lifetime {
        case .unchanging, .unstated: return
        case .seconds(let limit): seconds = limit
        case .none: seconds = 0
        }
        let then = date.second + Int64(min(seconds, 3600).rounded(.down))
        switch cache.freshness {
        case .http:
            // Regardless of the lifetime, this also disables stale-while-revalidate and stale-if-error.
            try? await media.limitUse(until: then)  // This fails if the cache is closed.
        case .revalidate: return
        case .immutable: _ = try? await media.remove()  // If this fails, the next request retries.
        }
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
