#if Proxy
import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import Spool

/// The bytes of a complete resource, for saving it as a file. Every byte is checked before it is sent.
///
/// No requests are sent to origins.
struct DashboardContent: Sendable {
    let cache: MediaCache

    /// Returns a response that contains a resource, or the requested range of it.
    ///
    /// The response to a request for several ranges contains all bytes (RFC 9110 §14.2).
    ///
    /// - Throws: `RequestFailure` with status 404, or 409 for a stream or an incomplete resource. `CacheError` if the
    ///   catalog can't be read.
    func response(of key: CacheKey, to request: RequestHead) async throws -> Response {
        guard let details = try await cache.details(of: key) else { throw DashboardAPI.notStored }
        let media = details.resource
        guard DashboardResource(StoredPresentation(media: media)).kind == .file else {
            throw RequestFailure(409, "the resource is a stream, which can't be saved as one file")
        }
        guard media.isComplete, let length = media.length else {
            throw RequestFailure(409, "the resource is not complete; preload the rest first")
        }
        let validator = Validator(fields: details.fields)
        let asked = request.fields.all
        var part: Range<Int64>?
        if request.method == .get, let header = RangeHeader(fields: asked),
            Preconditions.ifRangeHolds(asked, validator: validator)
        {
            switch header.resolve(length: length) {
            case .whole: break
            case .unsatisfiable: return Self.unsatisfiable(length)
            case .partial(let ranges): part = ranges.count == 1 ? ranges[0] : nil
            }
        }
        let range = part ?? 0..<length
        let cache = cache
        @Sendable func export(_ write: (ByteBuffer) async throws -> Void) async throws {
            try await cache.export(key, range: range) { bytes in try await write(ByteBuffer(bytes: bytes)) }
        }
        var response = Response(
            ResponseHead(part == nil ? 200 : 206, Self.fields(of: media, validator)),
            .stream(BodyStream(count: Int64(range.count), run: export)))
        if part != nil {
            let sent = ContentRange(range: range, length: length)
            response.head.fields[.contentRange] = sent.text
            response.contentRange = sent
        }
        response.isOwn = true
        return response
    }

    private static func fields(of media: StoredResource, _ validator: Validator) -> HTTPFields {
        var fields: HTTPFields = [
            .contentType: "application/octet-stream", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            .acceptRanges: "bytes",
        ]
        fields[.contentDisposition] = attachment(named: media.redactedURL)
        // Content from an origin must not become a page of this server.
        fields[.contentSecurityPolicy] = "sandbox"
        // A browser resumes an interrupted download only if it can identify the version.
        if let tag = validator.entityTag { fields[.eTag] = tag.text }
        if let date = validator.lastModified { fields[.lastModified] = date }
        return fields
    }

    private static func unsatisfiable(_ length: Int64) -> Response {
        var response = Response(ofAPI: RequestFailure(416, "the requested range is outside the resource"))
        response.head.fields[.contentRange] = ContentRange(range: nil, length: length).text
        return response
    }

    /// Returns a `Content-Disposition` with the last component of a URL's path (RFC 6266 §4.3, RFC 8187).
    static func attachment(named url: String) -> String {
        let last = url.split(separator: "/").last.map(String.init) ?? ""
        let name = (last.removingPercentEncoding ?? last).filter { character in
            // Control characters, and characters that change the direction of text, could disguise the type of the
            // file.
            !"/\\\"".contains(character)
                && character.unicodeScalars.allSatisfy { ![.control, .format].contains($0.properties.generalCategory) }
        }
        let allowed = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
        let encoded = String(name.prefix(200)).addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        return "attachment; filename*=UTF-8''" + (encoded.isEmpty ? "media" : encoded)
    }
}
#endif
