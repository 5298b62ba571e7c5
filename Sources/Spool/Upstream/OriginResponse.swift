package import Foundation
import HTTPRanges
package import HTTPTypes
package import SpoolStorage
import Synchronization

/// A final response of an origin that brings no media, such as a 404 with its page: to be handed on to whoever asked.
package struct OriginResponse: CacheErrorDetail {
    /// The status.
    package var status: Int
    /// The end-to-end fields, without `Set-Cookie`: several who wait for the same bytes get the same response.
    package var fields: HTTPFields
    /// Where it came from, after redirects.
    package var url: URL
    /// The body as far as it came, up to 64 KiB.
    package var body = Data()
    /// Whether that is all of it.
    package var isWhole = false

    init(_ response: UpstreamResponse) {
        status = response.head.status.code
        fields = EndToEndFields.of(response.head.headerFields)
        for name in [HTTPField.Name.setCookie, HTTPField.Name("Set-Cookie2")] { if let name { fields[name] = nil } }
        url = response.url
    }

    /// Whether a service of S3's kind says that a signature or a token has expired. It is a 403 at most of them, but a
    /// 400 for tokens at Amazon's (“Error Responses” of its API reference), and for signatures at others.
    var saysExpired: Bool {
        guard status == 400 else { return false }
        let text = String(decoding: body, as: UTF8.self)
        let codes = ["AccessDenied", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed", "TokenRefreshRequired"]
        return codes.contains { text.contains("<Code>\($0)</Code>") }
    }
}

extension CacheError {
    /// The origin's response that the error is about; nil if none came.
    package var response: OriginResponse? { detail as? OriginResponse }

    /// The same error, about `response`.
    func about(_ response: OriginResponse) -> CacheError {
        var error = self
        error.detail = error.detail ?? response
        return error
    }
}

extension OriginResponse {
    /// The most that is read of a body, and the longest that it may take.
    private static let limit = (bytes: 64 << 10, time: Duration.seconds(2))

    /// The head, and of the body what comes within the limits.
    static func reading(_ response: UpstreamResponse, on clock: CacheClock) async -> OriginResponse {
        let body = ReceivedBody(limit: limit.bytes)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await body.receive(response.body) }
            // Cancelled, the body has ended.
            group.addTask { try? await clock.networkSleep(limit.time) }
            await group.next()
            group.cancelAll()
        }
        var result = OriginResponse(response)
        (result.body, result.isWhole) = body.received
        return result
    }
}

/// The beginning of a body.
private final class ReceivedBody: Sendable {
    private let limit: Int
    private let state = Mutex((data: Data(), isWhole: false))

    init(limit: Int) { self.limit = limit }

    var received: (Data, Bool) { state.withLock { ($0.data, $0.isWhole) } }

    func receive(_ body: UpstreamBody) async {
        do {
            for try await chunk in body {
                let isFull = state.withLock { state in
                    let count = min(chunk.count, limit - state.data.count)
                    chunk.withUnsafeBytes { state.data.append(contentsOf: $0.prefix(count)) }
                    return count < chunk.count
                }
                if isFull { return }
            }
            if !Task.isCancelled { state.withLock { $0.isWhole = true } }
        } catch {
            // It broke off: what has come is told as a part.
        }
    }
}
