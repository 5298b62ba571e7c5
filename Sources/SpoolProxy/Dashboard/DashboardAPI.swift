#if Proxy
import Foundation
import HTTPTypes
import NIOCore
import Spool
import SpoolDashboard
import SpoolStorage
import Synchronization

/// The responder for the live page: its files, the data that it shows, and the operator's changes.
///
/// The server's access control is applied first. Errors are reported as JSON with one sentence.
struct DashboardAPI: Sendable {
    /// The settings, and whether this server allows changes.
    struct Settings: Encodable, Sendable {
        /// Whether requests with the operator's token can change anything.
        var canChange: Bool
        var settings: [OperatorSettings.Setting]
    }

    let feed: DashboardFeed
    let actions: OperatorActions
    /// Whether the server provides the media of all origins at this address.
    let servesAllOrigins: Bool
    private let durations = KnownDurations()

    private var cache: MediaCache { feed.cache }

    /// Returns whether this responder handles a path.
    ///
    /// - Parameter path: The path after `/.spool`, without a query.
    static func responds(to path: some StringProtocol) -> Bool {
        path.hasPrefix("/api/") && !["/api/command", "/api/media"].contains(String(path))
            || DashboardFile.named(path.dropFirst()) != nil && !path.isEmpty
    }

    /// Responds to a request for a file of the page or for the API.
    ///
    /// - Parameters:
    ///   - path: The path after `/.spool`, without a query.
    ///   - client: The client, for the restrictions on origins.
    func respond(
        to request: RequestHead, path: String, body: RequestBodyStream.Body?, client: ProxyClient
    ) async -> Response {
        do {
            guard path.hasPrefix("/api/") else { return try file(path, request) }
            try PageRequestRules.check(request)
            return try await respond(to: request, at: path.dropFirst("/api/".count), body, client)
        } catch {
            return Self.response(to: error)
        }
    }

    private func respond(
        to request: RequestHead, at path: Substring, _ body: RequestBodyStream.Body?, _ client: ProxyClient
    ) async throws -> Response {
        switch path {
        case "actions", "check":
            guard request.method == .other("POST") else {
                throw RequestFailure(405, "this path supports only POST", allowed: "POST")
            }
            try actions.checkToken(of: request)
            if path == "check" { return Self.withoutBody(204) }
            defer { feed.recordChange() }
            return try Self.json(try await actions.perform(try await actions.call(request, body), for: client))
        default: break
        }
        guard request.method == .get || request.method == .head else {
            throw RequestFailure(405, "this path supports only GET and HEAD", allowed: "GET, HEAD")
        }
        feed.start()
        switch path {
        case "status": return try Self.json(try await status(), isPretty: true)
        case "resources": return try Self.json(try await resources())
        case "history": return try Self.json(feed.history)
        case "settings": return try Self.json(actions.settings)
        case "events": return try events(request, client)
        default: break
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 3, parts[0] == "resources", parts.count >= 2,
            let key = CacheKey(rawValue: String(parts[1]))
        else { throw RequestFailure(404, "page not found") }
        if parts.count == 2 { return try Self.json(try await details(of: key)) }
        guard parts[2] == "content" else { throw RequestFailure(404, "page not found") }
        return try await DashboardContent(cache: cache).response(of: key, to: request)
    }

    // MARK: - Files and streams

    private func file(_ path: String, _ request: RequestHead) throws(RequestFailure) -> Response {
        guard request.method == .get || request.method == .head else {
            throw RequestFailure(405, "these pages support only GET and HEAD", allowed: "GET, HEAD")
        }
        guard let file = DashboardFile.named(path.dropFirst()) else { throw RequestFailure(404, "page not found") }
        var fields: HTTPFields = [
            .contentType: file.contentType, .eTag: file.entityTag, .cacheControl: "no-cache",
            .xContentTypeOptions: "nosniff",
        ]
        fields[.contentSecurityPolicy] = Self.policy
        let isKnown = request.fields.values("if-none-match").contains { $0.contains(file.entityTag) }
        var response = Response(
            ResponseHead(isKnown ? 304 : 200, fields), isKnown ? .none : .bytes(ByteBuffer(bytes: file.bytes)))
        response.isOwn = true
        return response
    }

    /// The content security policy of the page, which may load only its own files, and media through this server.
    static let policy = [
        "default-src 'self'", "media-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
    ].joined(separator: "; ")

    private func events(_ request: RequestHead, _ client: ProxyClient) throws -> Response {
        let fields: HTTPFields = [
            .contentType: "text/event-stream", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        ]
        guard request.method == .get else { return Self.own(ResponseHead(200, fields)) }
        let stream = try feed.events(after: request.fields["last-event-id"], for: client.network)
        var response = Self.own(ResponseHead(200, fields), .stream(stream))
        response.closes = true
        return response
    }

    // MARK: - Data

    private func status() async throws -> AdminStatus {
        try await AdminStatus(of: cache, started: feed.started) { feed.totals($0, fileCount: $1) }
    }

    private func resources() async throws -> DashboardResources {
        let (recent, count) = try await cache.recentResources(limit: DashboardChanges.recordLimit)
        let resources = StoredPresentation.presentations(in: recent).map { DashboardResource($0) }
        // Each record that was not read counts as one entry.
        return DashboardResources(count: resources.count + count - recent.count, resources: resources)
    }

    private func details(of key: CacheKey) async throws -> DashboardDetails {
        guard let details = try await cache.details(of: key) else { throw Self.notStored }
        let parts = try await cache.parts(of: key)
        let keys = Set([key] + parts.map(\.key))
        let presentation = StoredPresentation(media: details.resource, parts: parts)
        // Segments are sorted by their numbers.
        let sorted = parts.sorted { $0.redactedURL.compare($1.redactedURL, options: .numeric) == .orderedAscending }
            .prefix(DashboardDetails.partLimit)
        return DashboardDetails(
            resource: DashboardResource(presentation), details: details,
            parts: sorted.map { DashboardResource(StoredPresentation(media: $0), isPart: true) },
            mediaURL: details.isURLComplete && servesAllOrigins ? Self.mediaURL(of: details.resource) : nil,
            duration: await durations.duration(of: details.resource, in: cache),
            requests: cache.traffic.requests(for: keys, limit: DashboardDetails.requestLimit)
                .map { OriginRequestReport($0) },
            waits: cache.traffic.waits(for: keys, limit: DashboardDetails.waitLimit).map { WaitReport($0) })
    }

    /// Returns the path of a resource at this server, relative to the page.
    private static func mediaURL(of media: StoredResource) -> String? {
        guard let url = try? OriginURL(media.redactedURL) else { return nil }  // URLs with other schemes have no path.
        return ".." + ForwardAddress.requestTarget(for: url)
    }

    // MARK: - Responses

    static let notStored = RequestFailure(404, "nothing is stored under this key")

    private static func json(_ value: some Encodable, isPretty: Bool = false) throws -> Response {
        let data = try DashboardJSON.data(value, isPretty: isPretty)
        return own(ResponseHead(200, jsonFields), .bytes(ByteBuffer(bytes: data)))
    }

    private static let jsonFields: HTTPFields = [
        .contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
    ]

    private static func withoutBody(_ status: Int) -> Response {
        own(ResponseHead(status, [.cacheControl: "no-store"]))
    }

    private static func own(_ head: ResponseHead, _ body: Response.Body = .none) -> Response {
        var response = Response(head, body)
        response.head.fields[.contentSecurityPolicy] = policy
        response.isOwn = true
        return response
    }

    /// Returns the response that reports an error.
    private static func response(to error: any Error) -> Response {
        let failure =
            switch error {
            case let failure as RequestFailure: failure
            case let error as CacheError where error.code == .notStored: RequestFailure(404, error.message)
            case let error as CacheError where error.code == .incomplete: RequestFailure(409, error.message)
            case let error as CacheError where error.code == .invalidArgument: RequestFailure(400, error.message)
            case let error as CacheError: RequestFailure(500, error.message)
            default: RequestFailure(500, "the request failed: \(error)")
            }
        return Response(ofAPI: failure, realm: "spool operator")
    }
}

/// The durations of resources whose details have been shown, so that their containers are not read again each time.
private final class KnownDurations: Sendable {
    private let known = Mutex<[String: Double]>([:])
    /// The maximum number of durations. When it is reached, all of them are discarded.
    private static let limit = 1000

    /// Returns the duration of a resource, or `nil` if it is unknown or can't be read.
    func duration(of media: StoredResource, in cache: MediaCache) async -> Double? {
        let version = "\(media.key.hash) \(media.length ?? 0) \(media.validator ?? "")"
        if let duration = known.withLock({ $0[version] }) { return duration }
        // If the duration can't be read, the other details are still shown.
        guard let duration = try? await cache.duration(of: media.key) else { return nil }
        known.withLock { known in
            if known.count >= Self.limit { known = [:] }
            known[version] = duration
        }
        return duration
    }
}
#endif
