#if Proxy
import Foundation
import HTTPTypes
import NIOCore
import Spool

/// The responder for requests from the operator's programs: for the server's health and metrics, the stored media, and
/// commands.
struct AdminResponder: Sendable {
    let cache: MediaCache
    let metrics: ProxyMetrics
    let rules: AccessRules
    /// The operator's preloads. A command that removes resources cancels them first.
    let preloads: OperatorPreloads
    /// A function that is called after a command, which may have changed pins and stored media.
    let changed: @Sendable () -> Void
    /// A function that runs the operator's commands, or `nil` if commands are not allowed at this address.
    var run: (@Sendable ([String]) async -> CommandOutcome)?

    /// Responds to a request for one of the operator's pages.
    ///
    /// - Parameter path: The path after `/.spool`.
    /// - Throws: `RequestFailure` with status 400, 403, 404, 405 or 413.
    func respond(to request: RequestHead, path: String, body: RequestBodyStream.Body?) async throws -> Response {
        if let run, path == "/api/command", request.method == .other("POST") {
            guard rules.mayChange(request) else {
                throw RequestFailure(403, "web pages from other origins may not send commands")
            }
            defer { changed() }
            return try await response(to: try await call(body), run)
        }
        guard request.method == .get || request.method == .head else {
            throw RequestFailure(405, "these pages support only GET and HEAD", allowed: "GET, HEAD")
        }
        switch path.prefix(while: { $0 != "?" }) {
        case "/health": return Self.text("ok\n")
        case "/metrics":
            try PageRequestRules.check(request)
            return Self.response(figures(), type: PrometheusText.contentType)
        case "/api/media":
            try PageRequestRules.check(request)
            return try Self.response(json: try await cache.storedResources().map(MediaReport.init))
        case "":
            // The links on the live page are relative to `.spool/`.
            return Response(ResponseHead(308, [.location: ".spool/"]))
        default: throw RequestFailure(404, "page not found")
        }
    }

    private func call(_ body: RequestBodyStream.Body?) async throws -> CommandCall {
        var data = Data()
        if let body {
            for try await piece in body {
                data.append(contentsOf: piece.readableBytesView)
                guard data.count <= 1 << 20 else { throw RequestFailure(413, "the command exceeds 1 MiB") }
            }
        }
        do {
            return try JSONDecoder().decode(CommandCall.self, from: data)
        } catch {
            throw RequestFailure(400, "the command must be a JSON object with “arguments”, an array of strings")
        }
    }

    private func response(
        to call: CommandCall, _ run: @Sendable ([String]) async -> CommandOutcome
    ) async throws -> Response {
        let outcome = await OperatorPreloads.$ofServer.withValue(preloads) { await run(call.arguments) }
        return Self.response(
            String(decoding: try JSONEncoder().encode(outcome), as: UTF8.self), type: "application/json")
    }

    private func figures() -> String {
        var text = PrometheusText()
        text.add(metrics.counts)
        text.add(cache)
        return text.text
    }

    private static func response(json value: some Encodable) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return response(String(decoding: try encoder.encode(value), as: UTF8.self), type: "application/json")
    }

    private static func text(_ text: String) -> Response { response(text, type: "text/plain; charset=utf-8") }

    private static func response(_ text: String, type: String) -> Response {
        var response = Response(
            ResponseHead(200, [.contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff"]),
            .bytes(ByteBuffer(string: text)))
        response.head.fields[.contentSecurityPolicy] = "default-src 'self'"
        response.isOwn = true
        return response
    }
}
#endif
