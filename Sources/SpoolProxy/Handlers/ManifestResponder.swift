#if Proxy
import ByteRanges
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolHTTP
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
    let largeManifests = LargeManifestTurns()

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
        guard response.status == 200, Self.mayBeManifest(response.fields, length: response.length, at: call.url)
        else { return nil }
        if response.isCompressed, Self.indicatesManifest(response.fields, at: call.url) {
            // The origin ignored the requested encoding. A compressed playlist is not parsed, so whether it is live is
            // unknown.
            await limit(.none, of: media)
            return nil
        }
        let name = opened.version?.description
        let kind: ManifestKind?
        if let name, let known = knowledge.kind(ofVersion: name) {
            kind = known
        } else {
            let isNamed = Self.indicatesManifest(response.fields, at: call.url)
            guard isNamed || mayRead && Self.isCheapToRead(request, response) else { return nil }
            guard let found = try await readStart(media, within: isNamed ? nil : Self.inspectionTimeout) else {
                return nil
            }
            kind = found.kind
            if let version = found.version { knowledge.record(kind, ofVersion: version.description) }
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

    /// Returns a redirect to the origin instead of a response that is compressed although no compression was requested.
    ///
    /// The server can't read the response, and it may be a manifest. In forward mode, the server's URLs contain the
    /// name of the origin, and they may contain the token. An unchanged manifest could make a player send them to other
    /// hosts. If the server has its own origin, the operator trusts that origin.
    ///
    /// - Returns: `nil` if the client may receive the response.
    /// - Throws: `RequestFailure` with status 502 if the client can't request the origin's URL itself.
    func redirect(
        forStatus status: Int, to request: RequestHead, _ call: OutgoingRequest
    ) throws(RequestFailure) -> Response? {
        guard request.method == .get, !call.isForOperator, !call.isReverse, (200..<300).contains(status) else {
            return nil
        }
        guard call.presentation == nil else {
            throw RequestFailure(
                502, "\(call.url.nameForMessages): the response is compressed, although compression was not requested"
            ).namingOrigin()
        }
        return Response(ResponseHead(307, [.location: call.url.description, .cacheControl: "no-store"]))
    }

    /// Returns whether a version may be a manifest. The method does not read the version.
    func mayBeManifest(_ opened: OpenedResponse, at url: OriginURL) -> Bool {
        opened.response.status == 200 && !isKnownNotManifest(opened)
            && Self.mayBeManifest(opened.response.fields, length: opened.response.length, at: url)
    }

    /// Returns whether a version is known not to be a manifest, because its bytes have been examined.
    func isKnownNotManifest(_ opened: OpenedResponse) -> Bool {
        opened.version.map { knowledge.kind(ofVersion: $0.description) == .some(nil) } ?? false
    }

    /// The maximum size of a manifest that is rewritten on the threads that serve players, in bytes. Rewriting a larger
    /// one there would delay players.
    static let quickBytes = 256 << 10
    /// The maximum estimated size of all absolute URLs in such a manifest, in bytes.
    static let quickURLBytes = 4 << 20

    /// The maximum size of small media, in bytes. The first bytes of small media are read even if they are not
    /// requested, or if the type is that of a segment.
    private static let smallBytes: Int64 = 256 << 10

    /// Returns whether a response with these fields may be a manifest, so that its first bytes are read.
    func mayBeManifest(_ fields: HTTPFields, at url: OriginURL) -> Bool {
        Self.mayBeManifest(fields, length: fields.contentLength, at: url)
    }

    /// Returns whether a resource with this type, path and length may be a manifest.
    private static func mayBeManifest(_ fields: HTTPFields, length: Int64?, at url: OriginURL) -> Bool {
        if let length, length > HLSPlaylist.maximumBytes || length < 7 { return false }
        guard let type = fields[.contentType]?.lowercased() else { return true }
        if indicatesManifest(fields, at: url) { return true }
        // Servers often send a playlist with the type of its segments.
        if type.hasPrefix("video/") || type.hasPrefix("audio/") { return length.map { $0 <= smallBytes } ?? false }
        if type.hasPrefix("image/") { return length ?? 0 <= smallBytes }
        return !neverManifests.contains { type.hasPrefix($0) } && !type.contains("json")
    }

    /// The prefixes of media types that manifests never have. The first bytes of an event stream may be late.
    private static let neverManifests = ["font/", "text/event-stream"]
    /// The time limit for the first byte of a resource, if neither its type nor its path identifies it as a manifest.
    private static let inspectionTimeout = Duration.seconds(2)

    /// Returns whether the type or the path indicates a manifest.
    static func indicatesManifest(_ fields: HTTPFields, at url: OriginURL) -> Bool {
        ManifestHint.isInFields(fields) || ManifestHint.isInPath(url.path)
    }

    /// Returns whether reading the first bytes is cheap: the client requests them, or the resource is small.
    private static func isCheapToRead(_ request: RequestHead, _ response: StoredResponse) -> Bool {
        guard let text = request.fields["range"], !text.hasPrefix("bytes=0-") else { return true }
        return response.length ?? .max <= smallBytes
    }

    /// Reads the first bytes.
    ///
    /// - Parameter limit: The time limit for the first byte, or `nil` if there is none.
    /// - Returns: The kind, which is `nil` if the bytes are not a manifest, and the version that was read. The result
    ///   is `nil` if the first byte is not received within the time limit.
    private func readStart(
        _ media: MediaResource, within limit: Duration?
    ) async throws -> (kind: ManifestKind?, version: GenerationIdentifier?)? {
        var prefix: [UInt8] = []
        // If another version has become current, these bytes only determine the kind; see ``reader(of:in:)``.
        let start = MediaRange.bytes(0..<Int64(ManifestKind.prefixLength))
        let reader = media.readerOfOpenVersion(start, isCounted: false)
        defer { reader.cancel() }
        let version = try await reader.response().version
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
            guard ManifestKind.isPossible(prefix: prefix) else { return (nil, version) }
            next = try await reader.next()
        }
        return (ManifestKind(prefix: prefix), version)
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

    /// Reads and rewrites a whole manifest. Returns `nil` if the document is not a manifest, and players must receive
    /// it unchanged.
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
            try Self.checkSize(bytes.count)
        }
        let received = Received(
            bytes: bytes, url: Self.found(call, response), key: media.key,
            version: response.validator.entityTag?.text ?? response.validator.lastModified ?? "",
            isFromStore: !isOriginThere)
        if let known = await earlierResult(received, call) { return manifest(known, response) }
        guard let result = try await rewrite(received, kind, call) else { return nil }
        await limit(result.lifetime, of: media)
        try share.resize(to: result.bytes.count)
        let sent = ByteBuffer(bytes: result.bytes)
        guard !call.isForOperator else { return Manifest(response: response, bytes: sent, memory: share) }
        let entry = RewrittenManifests.Entry(
            kind: kind, received: received.bytes, found: received.url, bytes: sent, tag: result.entityTag,
            keys: result.keys,
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
        let then = date.second + Int64(saturating: min(seconds, 3600).rounded(.down))
        switch cache.freshness {
        case .http:
            // Regardless of the lifetime, this also disables stale-while-revalidate and stale-if-error.
            try? await media.limitUse(until: then)  // This fails if the cache is closed.
        case .revalidate: return
        case .immutable: _ = try? await media.remove()  // If this fails, the next request retries.
        }
    }
}
#endif
