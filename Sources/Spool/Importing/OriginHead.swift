import Foundation
import HTTPRanges
import HTTPTypes
import SpoolScheduling
import SpoolStorage

/// The header fields and the length of a resource, without its bytes.
struct OriginHead: Sendable {
    /// The header fields of the whole resource.
    var fields: HTTPFields
    /// The length of the whole resource, in bytes, or `nil` if the origin does not send the length.
    var length: Int64?

    /// Requests the fields with `HEAD`. If the origin does not allow `HEAD`, as is the case for many signed URLs,
    /// requests the first byte instead. If the origin rejects the credentials, requests the fields once more with new
    /// credentials.
    ///
    /// - Throws: `CacheError`: `.originUnavailable`, `.originErrorStatus`.
    init(of source: MediaSource, in cache: MediaCache) async throws {
        let exchange = OriginExchange(credentials: cache.credentials(of: source), context: cache.context)
        func ask(_ method: HTTPRequest.Method) async throws -> OriginExchange.Opened {
            let opened = try await exchange.open(as: .preload) { request in
                request.method = method
                if method == .get { request.headerFields[.range] = RangeHeader.text(for: 0..<1) }
            }
            opened.connection.end()
            return opened
        }
        do {
            var opened = try await ask(.head)
            // Credentials may be valid for GET only.
            if [401, 403, 405, 407, 501].contains(opened.response.head.status.code) { opened = try await ask(.get) }
            if try await exchange.refreshesCredentials(after: opened) { opened = try await ask(.get) }
            let head = opened.response.head
            fields = head.headerFields
            switch head.status.code {
            case 200: length = fields.contentLength
            case 206: length = fields.parsedContentRange?.length
            case let status:
                throw CacheError(
                    .originErrorStatus, "\(source.redactedURL): the origin responded with status \(status)",
                    status: status)
            }
        } catch {
            let reported = exchange.reported(error, at: source.redactedURL)
            throw (reported as? CacheError)?.about(cache.key(for: source)) ?? reported
        }
    }
}
