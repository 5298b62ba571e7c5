#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage

/// A builder of responses for media, manifests, and errors from the cache.
///
/// The builder does not make decisions about the cache, and never waits. Bodies of media are read when they are sent.
struct ResponseBuilder: Sendable {
    let date: DateText
    /// The node's name in `Cache-Status`, or `nil` if it has none.
    let node: String?

    /// Returns the plan for a version: its head, and the bytes that the client receives.
    func plan(for request: RequestHead, _ response: StoredResponse) -> ResponsePlan {
        ResponsePlan(for: request, response, now: date.second, boundary: Self.boundary())
    }

    private static func boundary() -> String {
        (0..<3).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }.joined()
    }

    /// Returns the response with the bytes of a reader.
    func response(to request: RequestHead, _ plan: ResponsePlan, _ opened: MediaOpener.Opened) -> Response {
        let (media, reader, head) = (opened.media, opened.reader, opened.head)
        var response = response(plan, head)
        response.isStored = head.source == .hit
        response.origin = (media, head.response)
        guard request.method == .get else {
            reader.cancel()
            if case .whole(let length) = plan.content { response.lengthForHead = length }
            return response
        }
        switch plan.content {
        case .none: reader.cancel()
        case .whole(let length): response.body = .media(reader, count: length)
        case .range(let range): response.body = .media(reader, count: range.upperBound - range.lowerBound)
        case .multipart(let parts):
            reader.cancel()
            response.body = .parts(Self.parts(parts, of: media, head.version), count: parts.contentLength ?? 0)
        }
        return response
    }

    private static func parts(
        _ parts: MultipartByteRanges, of media: MediaResource, _ version: GenerationIdentifier?
    ) -> [Response.Part] {
        var body: [Response.Part] = []
        for (index, range) in parts.ranges.enumerated() {
            body.append(.text(parts.head(ofPart: index)))
            body.append(
                .media(
                    media.sliceReader(.bytes(range)), count: range.upperBound - range.lowerBound,
                    of: version))
        }
        return body + [.text(parts.closing)]
    }

    /// Returns the response with the bytes of a manifest.
    func response(
        to request: RequestHead, _ manifest: ManifestResponder.Manifest, _ head: OpenedResponse
    ) -> Response {
        // A body with several parts would require a copy of the manifest for each client. RFC 9110 §14.2 allows sending
        // all of it.
        let plan = ResponsePlan(
            for: request, manifest.response, sendsParts: false, now: date.second, boundary: Self.boundary())
        var response = response(plan, head)
        response.isStored = true
        response.memory = manifest.memory
        switch plan.content {
        case .none, .multipart: break
        case .whole: response.body = .bytes(manifest.bytes)
        case .range(let range):
            let start = manifest.bytes.readerIndex + Int(range.lowerBound)
            response.body = .bytes(manifest.bytes.getSlice(at: start, length: range.count) ?? ByteBuffer())
        }
        return response
    }

    /// Returns the planned head with the fields of this server, without a body.
    private func response(_ plan: ResponsePlan, _ head: OpenedResponse) -> Response {
        var response = Response(plan.head)
        response.note(CacheStatus.Outcome(head, at: date.second), by: node)
        response.head.fields.append(HTTPField(name: .via, value: "1.1 spool"))
        response.contentRange = plan.contentRange
        return response
    }

    // MARK: - Errors

    /// Returns the origin's own error response if its body is too long to be included in the error, and no other client
    /// has received it.
    func response(to request: RequestHead, _ error: CacheError, withLongBodyFor source: MediaSource) -> Response? {
        guard request.method == .get, let said = error.response, Self.maySend(status: said.status),
            let (body, cookies) = said.takeLongBody(for: source)
        else { return nil }
        var response = Response(
            ResponseHead(said.status, said.fields + cookies), .upstream(body, count: said.fields.contentLength))
        response.note(.forwarded(.miss, stored: false, status: said.status), by: node)
        return response
    }

    /// Returns whether the cache can't use the origin's response, but the client may be able to. Examples are a
    /// compressed response, or a web page instead of the stored media if the client is a browser that opens a page.
    static func isOnlyForClient(_ error: CacheError, for request: RequestHead) -> Bool {
        guard error.code == .malformedResponse else { return false }
        if let status = error.httpStatus { return mediaStatuses.contains(status) }
        guard let said = error.response, mediaStatuses.contains(said.status) else { return false }
        let isPage = pageTypes.contains { said.fields[.contentType]?.lowercased().hasPrefix($0) == true }
        // Players accept any type, and a page would end their playback.
        return isPage && request.fields.values("accept").contains { $0.lowercased().contains("text/html") }
    }

    private static let mediaStatuses: Set<Int> = [200, 203, 206]
    private static let pageTypes = ["text/html", "application/xhtml+xml"]

    /// Returns whether the origin's error response must be requested again, because its body is too long to be included
    /// in the error.
    static func mustRequestAgain(_ error: CacheError, for request: RequestHead) -> Bool {
        guard let said = error.response else { return false }
        return !said.isWhole && request.method == .get && maySend(status: said.status)
    }

    /// Returns the origin's own error response if there is one, otherwise a response that reports the error.
    func response(to request: RequestHead, _ error: CacheError) -> Response {
        guard let said = error.response, said.isWhole || request.method == .head, Self.maySend(status: said.status)
        else { return Response(Self.failure(error)) }
        var response = Response(ResponseHead(said.status, said.fields), .bytes(ByteBuffer(bytes: said.body)))
        response.lengthForHead = said.fields.contentLength
        response.note(.forwarded(.miss, stored: false, status: said.status), by: node)
        return response
    }

    /// Returns whether a status from the origin has the same meaning for the client.
    ///
    /// Success statuses with media, and statuses about conditions or ranges, refer to the cache's own request.
    private static func maySend(status: Int) -> Bool {
        (200...599).contains(status) && ![200, 206, 304, 416].contains(status)
    }

    static func failure(_ error: CacheError) -> RequestFailure {
        switch error.code {
        case .unsatisfiableRange: return RequestFailure(416, of: error)
        case .originErrorStatus:
            return RequestFailure(error.httpStatus.map { (400...599).contains($0) ? $0 : 502 } ?? 502, of: error)
        case .notStored: return RequestFailure(504, of: error)
        case .malformedResponse, .resourceChanged: return RequestFailure(502, of: error)
        case .originUnavailable:
            // A 504 invites a client to try again, which does not help here (RFC 9110 §15.6.3).
            if let cause = error.underlying as? UpstreamError, !cause.isTransient {
                return RequestFailure(502, of: error)
            }
            return RequestFailure(504, of: error, retryAfter: 1)
        default: return RequestFailure(500, of: error)
        }
    }
}

extension RequestFailure {
    /// Creates the failure for an error. Its message may contain paths on the server or details about the origin.
    init(_ status: Int, of error: any Error, retryAfter: Int? = nil) {
        self.init(status, "\(error)", retryAfter: retryAfter)
        namesOrigin = true
        // Other errors may originate in the system or the database.
        namesFiles = (error as? CacheError).map(\.mayNameFiles) ?? !(error is UpstreamError)
    }
}

extension CacheError {
    /// Whether the message may contain the path of the cache or of a file in it.
    fileprivate var mayNameFiles: Bool {
        switch code {
        case .storage, .directoryInUse, .catalogTooNew, .catalogDamaged, .closed, .keyRequired, .wrongEncryptionKey:
            true
        default: false
        }
    }
}
#endif
