package import Foundation
import HTTPRanges
package import HTTPTypes
package import SpoolStorage
import Synchronization

/// A final response without media from an origin, such as a 404 with an error page. It is forwarded to the clients
/// whose requests caused it.
package struct OriginResponse: CacheErrorDetail {
    /// The status code.
    package var status: Int
    /// The end-to-end fields, without `Set-Cookie`, because all clients that wait for the same bytes receive them.
    package var fields: HTTPFields
    /// The URL of the response, after redirects.
    package var url: URL
    /// The received part of the body, up to 64 KiB.
    package var body = Data()
    /// Whether ``body`` is the whole body.
    package var isWhole = false
    /// The whole body if it is longer than `body`, for one client; see ``takeLongBody(for:)``.
    private var long: LongBody?

    init(_ response: UpstreamResponse) {
        status = response.head.status.code
        fields = EndToEndFields.of(response.head.headerFields)
        for name in [HTTPField.Name.setCookie, HTTPField.Name("Set-Cookie2")] { if let name { fields[name] = nil } }
        url = response.url
    }

    /// Takes the whole body of an error response if it is longer than ``body``, and the cookies of the response.
    ///
    /// Only one client can take it, soon after the response, and only if the request was sent with that client's header
    /// fields. For all other clients, the result is `nil`.
    package func takeLongBody(for source: MediaSource) -> (body: UpstreamBody, cookies: HTTPFields)? {
        long?.take(for: source)
    }

    /// Whether this is a 400 response in which a service such as S3 reports that a signature or token has expired. Most
    /// services send 403. Amazon sends 400 for tokens (“Error Responses” in its API reference), and other services send
    /// 400 for signatures.
    var reportsExpiration: Bool {
        guard status == 400 else { return false }
        let text = String(decoding: body, as: UTF8.self)
        let codes = ["AccessDenied", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed", "TokenRefreshRequired"]
        return codes.contains { text.contains("<Code>\($0)</Code>") }
    }
}

extension CacheError {
    /// The origin's response that the error is about; `nil` if there was none.
    package var response: OriginResponse? { detail as? OriginResponse }

    /// Returns the same error with `response` as its detail, unless the error already has a detail.
    func about(_ response: OriginResponse) -> CacheError {
        var error = self
        error.detail = error.detail ?? response
        return error
    }
}

extension OriginResponse {
    /// The maximum number of bytes to read from a body, and the maximum time to read them.
    private static let limit = (bytes: 64 << 10, time: Duration.seconds(2))
    /// The maximum time for the body of a redirect. Clients do not need the body, and some origins never send it.
    private static let redirectTime = Duration.milliseconds(500)

    /// Returns the headers and the part of the body that is received within the limits.
    ///
    /// - Parameter source: The source that requested the response, if one of its clients may take an error body that
    ///   exceeds the limit; otherwise `nil`.
    static func reading(
        _ response: UpstreamResponse, for source: MediaSource? = nil, on clock: CacheClock, _ executor: BlockingExecutor
    ) async -> OriginResponse {
        let body = ReceivedBody(limit: limit.bytes)
        let isRedirect = (300...399).contains(response.head.status.code)
        let time = isRedirect ? redirectTime : limit.time
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await body.receive(response.body) }
            group.addTask { try? await clock.networkSleep(time) }  // This is cancelled when the body has ended.
            await group.next()
            group.cancelAll()
        }
        var result = OriginResponse(response)
        (result.body, result.isWhole) = body.received
        if isRedirect, !result.isWhole, result.body.count < limit.bytes {
            (result.body, result.isWhole) = (Data(), true)
            result.fields = EndToEndFields.withoutDigests(result.fields)
            for name in [HTTPField.Name.contentLength, .contentEncoding] { result.fields[name] = nil }
        }
        if let source, (400...599).contains(result.status), let rest = body.takeRest() {
            let cookies = EndToEndFields.cookies(of: response.head.headerFields)
            let long = LongBody(rest, cookies, source)
            result.long = long
            Task(executorPreference: executor.executor(for: .storing)) {
                try? await clock.networkSleep(LongBody.timeout)  // Cancelling would only release the body sooner.
                long.release()
            }
        }
        return result
    }
}

/// The body of an error response, if the body is too long for ``OriginResponse``. One client may take it within
/// ``timeout``. After that, it is released, which closes the request.
private final class LongBody: Sendable {
    /// The time within which a client may take the body. It is short, because the client is already waiting for the
    /// error.
    static let timeout = Duration.seconds(1)

    private let body: Mutex<UpstreamBody?>
    private let cookies: HTTPFields
    private let source: MediaSource

    init(_ body: UpstreamBody, _ cookies: HTTPFields, _ source: MediaSource) {
        self.body = Mutex(body)
        self.cookies = cookies
        self.source = source
    }

    func take(for other: MediaSource) -> (UpstreamBody, HTTPFields)? {
        // The response may contain personal data.
        guard other.requestsAlike(source) else { return nil }
        return release().map { ($0, cookies) }
    }

    @discardableResult
    func release() -> UpstreamBody? {
        body.withLock { body in
            defer { body = nil }
            return body
        }
    }
}

/// The first bytes of a body.
private final class ReceivedBody: Sendable {
    private let limit: Int
    private let state = Mutex((data: Data(), isWhole: false))
    private let rest = Mutex<UpstreamBody?>(nil)

    init(limit: Int) { self.limit = limit }

    var received: (Data, Bool) { state.withLock { ($0.data, $0.isWhole) } }

    /// Takes the whole body if it exceeded the limit.
    func takeRest() -> UpstreamBody? {
        rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
    }

    func receive(_ body: UpstreamBody) async {
        var iterator = body.makeAsyncIterator()
        do {
            while let chunk = try await iterator.next() {
                let full = state.withLock { state -> Data? in
                    let count = min(chunk.count, limit - state.data.count)
                    chunk.withUnsafeBytes { state.data.append(contentsOf: $0.prefix(count)) }
                    guard count < chunk.count else { return nil }
                    return chunk.withUnsafeBytes { state.data + $0.dropFirst(count) }
                }
                if let full {
                    let whole = UpstreamBody([UpstreamChunk(full)], continuedBy: iterator)
                    return rest.withLock { $0 = whole }
                }
            }
            if !Task.isCancelled { state.withLock { $0.isWhole = true } }
        } catch {
            // The connection was lost, so the received bytes are only part of the body.
        }
    }
}
