import Foundation
import HTTPRanges
import HTTPTypes
import SpoolStorage

/// What an origin says of a media file without sending it.
struct OriginHead: Sendable {
    /// The whole's header fields.
    var fields: HTTPFields
    /// The whole's length in bytes, if the origin tells it.
    var length: Int64?

    /// Asks for it by `HEAD`; an origin that does not take that, as for many a signed URL, for the first byte, and once more
    /// with fresh credentials where it refuses them.
    ///
    /// - Throws: `CacheError`: `.originUnavailable`, `.originRefused`.
    init(of source: MediaSource, in cache: MediaCache) async throws {
        do {
            let credentials = cache.credentials(of: source)
            func ask(_ method: HTTPRequest.Method) async throws -> (head: HTTPResponse, number: Int) {
                let resolved = try await credentials.resolved()
                var request = UpstreamRequest(
                    url: resolved.request.url, headerFields: resolved.request.headerFields)
                request.headerFields[.acceptEncoding] = "identity"
                request.method = method
                if method == .get { request.headerFields[.range] = RangeHeader.text(for: 0..<1) }
                return (try await cache.upstream.open(request).head, resolved.number)
            }
            var (head, number) = try await ask(.head)
            // Credentials may be for GET alone.
            if [401, 403, 405, 407, 501].contains(head.status.code) { (head, number) = try await ask(.get) }
            let status = head.status.code
            if [401, 403, 407, 410].contains(status), try await credentials.refresh(number, status: status) {
                head = try await ask(.get).head
            }
            fields = head.headerFields
            switch head.status.code {
            case 200: length = fields.contentLength
            case 206: length = fields[.contentRange].flatMap { ContentRange(parsing: $0) }?.length
            case let status:
                throw CacheError(
                    .originRefused, "\(source.displayAddress): the origin responded with status \(status)",
                    status: status, key: cache.key(for: source))
            }
        } catch let error as UpstreamError {
            if error.code == .cancelled { throw CancellationError() }
            let text = "\(source.displayAddress): \(error.message(after: source.displayAddress))"
            throw CacheError(.originUnavailable, text, key: cache.key(for: source), underlying: error)
        }
    }
}
