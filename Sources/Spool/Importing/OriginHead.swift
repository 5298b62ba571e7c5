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

    /// Asks for it by `HEAD`; an origin that does not take that, as for many a signed URL, for the first byte.
    ///
    /// - Throws: `CacheError`: `.originUnavailable`, `.originRefused`.
    init(of source: MediaSource, in cache: MediaCache) async throws {
        do {
            let resolved = try await cache.credentials(of: source).resolved().request
            var request = UpstreamRequest(url: resolved.url, headerFields: resolved.headerFields)
            request.headerFields[.acceptEncoding] = "identity"
            request.method = .head
            var head = try await cache.upstream.open(request).head
            if [403, 405, 501].contains(head.status.code) {
                request.method = .get
                request.headerFields[.range] = RangeHeader.text(for: 0..<1)
                head = try await cache.upstream.open(request).head
            }
            fields = head.headerFields
            switch head.status.code {
            case 200: length = fields[.contentLength].flatMap { Int64($0) }
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
