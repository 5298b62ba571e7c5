import Foundation
import HTTPTypes
import SpoolOrigin

extension OriginBehaviour {
    /// The part that shows before the response is decided: another request than was sent, or another resource.
    func prepare(_ request: inout OriginRequest, _ resource: inout OriginResource) {
        switch self {
        case .ignoresRanges: request.headerFields[.range] = nil
        case .ignoresIfRange: request.headerFields[.ifRange] = nil
        case .partialToEverything where request.headerFields[.range] == nil: ask(&request, 0...)
        case .rangeNotSatisfiable: ask(&request, resource.content.length...)
        case .refusesRanges(let contentRange):
            guard request.headerFields[.range] != nil else { return }
            resource.refusal = OriginRefusal(416, contentRange.map { ["Content-Range": $0] } ?? [:])
        case .rangeLimit(let bytes): limit(&request, to: bytes, of: resource.content.length)
        case .etag(let text): resource.etag = text
        case .noValidators: (resource.etag, resource.lastModified) = (nil, nil)
        case .version(let content, let etag): (resource.content, resource.etag) = (content, etag)
        case .gzip:
            resource.content = .data(StoredGzip.encode(resource.content.bytes(0..<resource.content.length)))
            resource.headerFields[.contentEncoding] = "gzip"
        case .status(let status, let fields): resource.refusal = OriginRefusal(status, fields)
        case .redirect(let location, let status): resource.refusal = OriginRefusal(status, ["Location": location])
        case .raw(let text, let closes): resource.raw = .init(Array(text.utf8), closes: closes)
        case .requiresField(let name, let value, let status):
            let given = HTTPField.Name(name).flatMap { request.headerFields[$0] }
            guard given != value else { return }
            resource.refusal = OriginRefusal(status, status == 401 ? ["WWW-Authenticate": "Bearer"] : [:])
        case .requiresQuery(let query, let status):
            if request.query != query { resource.refusal = OriginRefusal(status) }
        default: break
        }
    }

    /// The part that shows in the response that was decided: what it says, or how it ends.
    func revise(_ response: inout OriginResponse) {
        switch self {
        case .ignoresRanges(let acceptRanges):
            guard response.lines.contains(where: { $0.name == "Accept-Ranges" }) else { return }
            response.setField("Accept-Ranges", acceptRanges)
        case .contentRangeShifted(let bytes):
            guard let said = response.contentRange?.bytes else { return }
            response.contentRange?.bytes = said.lowerBound + bytes..<said.upperBound + bytes
        case .contentRangeTotal(let total): response.contentRange?.total = total
        case .contentRange(let text): if response.status == 206 { response.setField("Content-Range", text) }
        case .bodyLonger(let bytes):
            guard [200, 206].contains(response.status) else { return }
            let body = response.body
            response.body = body.lowerBound..<max(body.lowerBound, body.upperBound + bytes)
        case .noLength(let framing): response.framing = framing == .chunked ? .chunked : .close
        case .contentLength(let bytes): response.promisedLength = bytes
        case .field(let name, let value): response.setField(name, value)
        case .cut(let after): response.incident = .init(kind: .cut, after: after)
        case .reset(let after): response.incident = .init(kind: .reset, after: after)
        case .stall(let after): response.incident = .init(kind: .stall, after: after)
        case .drip(let bytes, let every): response.pace = OriginPace(bytes: bytes, every: every)
        case .closes: response.closes = true
        default: break
        }
    }

    private func ask(_ request: inout OriginRequest, _ range: PartialRangeFrom<Int64>) {
        request.headerFields[.range] = "bytes=\(range.lowerBound)-"
        request.headerFields[.ifRange] = nil
    }

    private func limit(_ request: inout OriginRequest, to bytes: Int64, of length: Int64) {
        guard let asked = request.headerFields[.range].flatMap({ AskedRange($0) })?.resolve(length) else { return }
        let last = asked.lowerBound + min(Int64(asked.count), max(1, bytes)) - 1
        request.headerFields[.range] = "bytes=\(asked.lowerBound)-\(last)"
    }
}
