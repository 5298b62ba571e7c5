package import Foundation
import HTTPRanges
package import HTTPTypes
package import SpoolStorage
import Synchronization

/// A final response of an origin without media, such as a 404 with its page, to be passed to the client.
package struct OriginResponse: CacheErrorDetail {
    /// The status.
    package var status: Int
    /// The end-to-end fields, without `Set-Cookie`, because several clients that wait for the same bytes get the same
    /// response.
    package var fields: HTTPFields
    /// The URL of the response, after redirects.
    package var url: URL
    /// The received part of the body, up to 64 KiB.
    package var body = Data()
    /// Whether the body is complete.
    package var isWhole = false

    init(_ response: UpstreamResponse) {
        status = response.head.status.code
        fields = EndToEndFields.of(response.head.headerFields)
        for name in [HTTPField.Name.setCookie, HTTPField.Name("Set-Cookie2")] { if let name { fields[name] = nil } }
        url = response.url
    }

    /// Whether an S3-compatible service reports an expired signature or token. Most services send a 403. Amazon sends a
    /// 400 for tokens (“Error Responses” of its API reference), and other services do so for signatures.
    var saysExpired: Bool {
        guard status == 400 else { return false }
        let text = String(decoding: body, as: UTF8.self)
        let codes = ["AccessDenied", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed", "TokenRefreshRequired"]
        return codes.contains { text.contains("<Code>\($0)</Code>") }
    }
}

extension CacheError {
    /// The origin's response that the error is about; `nil` if none was received.
    package var response: OriginResponse? { detail as? OriginResponse }

    /// Returns the same error, about `response`.
    func about(_ response: OriginResponse) -> CacheError {
        var error = self
        error.detail = error.detail ?? response
        return error
    }
}

extension OriginResponse {
    /// The maximum number of bytes of a body, and the maximum time to read them.
    private static let limit = (bytes: 64 << 10, time: Duration.seconds(2))

    /// Returns the headers, and the part of the body that is received within the limits.
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

/// The received start of a body.
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
            // The body was interrupted. The received part is reported as incomplete.
        }
    }
}
