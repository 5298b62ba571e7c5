import Foundation
import HTTPTypes

/// What an origin responds to one request: decided here, sent by ``OriginConnection``.
///
/// Pure: no socket, no clock (the date is given). The origin reads `Range` and `If-Range` by its own few lines and not
/// with the package's parser, so that one misreading cannot hide another.
struct OriginResponse {
    var status: Int
    /// Names and values of the head's fields, also ones that HTTP does not allow.
    var lines: [(String, String)]
    /// The `Content-Length` where that is not the length of the body.
    var promisedLength: Int64?
    private var version = "1.1"
    /// What the body is cut from.
    var content: OriginContent
    /// The bytes of `content` that are really sent; empty for responses without a body.
    var body: Range<Int64>
    var isChunked = false
    /// Whether the connection closes after the last byte.
    var closes = false
    /// What happens before the end, if anything.
    var incident: Incident?
    var drip: (bytes: Int, every: Duration)?

    /// Something that happens after `after` body bytes, or before the head.
    struct Incident {
        enum Kind { case cut, reset, stall }
        var kind: Kind
        var after: Int64?
    }

    /// The parts of a request that matter.
    struct Request {
        var method: String
        var query: String
        var fields: HTTPFields
        var keepsAlive: Bool
        /// How many requests to the same address came before.
        var index: Int
    }

    init(to request: Request, from resource: OriginResource?, now: Date) {
        var draft = Draft(request: request, resource: resource)
        for rule in resource?.rules ?? [] where rule.requests.contains(request.index) { draft.apply(rule.behaviour) }
        draft.decide()
        content = draft.content
        status = draft.status
        body = draft.body
        incident = draft.incident
        drip = draft.drip
        promisedLength = draft.contentLength
        if request.method == "HEAD" || [204, 304].contains(status) { body = 0..<0 }
        closes = draft.closes || !request.keepsAlive
        lines = draft.lines
        switch draft.framing {
        case .chunked: lines.append(("Transfer-Encoding", "chunked"))
        case .close:
            version = "1.0"
            closes = true
        case nil:
            if status != 304, status != 204 {
                lines.append(("Content-Length", String(draft.contentLength ?? Int64(draft.body.count))))
            }
        }
        isChunked = draft.framing == .chunked && request.method != "HEAD" && ![204, 304].contains(status)
        if draft.contentLength != nil { closes = true }
        if closes { lines.append(("Connection", "close")) }
        lines.append(("Date", HTTPDate.text(now)))
    }

    /// Status and fields; those that HTTP does not allow are missing.
    var response: HTTPResponse {
        var fields = HTTPFields()
        for (name, value) in lines {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return HTTPResponse(status: .init(code: status), headerFields: fields)
    }

    /// Status line and fields with the empty line after them, as they go over the wire.
    var head: String {
        let reason = HTTPResponse.Status(code: status).reasonPhrase
        return "HTTP/\(version) \(status) \(reason)\r\n" + lines.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
    }
}

/// A response while it is put together: first the behaviours set knobs, then ``decide()`` follows RFC 9110 with them.
private struct Draft {
    let request: OriginResponse.Request
    var content: OriginContent
    var etag: String?
    var lastModified: Date?
    var contentType: String?
    var extra: HTTPFields
    var exists: Bool

    var ignoresRanges = false
    var acceptRanges: String? = "bytes"
    var alwaysPartial = false
    var ignoresIfRange = false
    var shift: Int64 = 0
    var total: Int64??
    var contentRange: String??
    var longer: Int64 = 0
    var limit = Int64.max
    var unsatisfiable = false
    var framing: OriginBehaviour.Framing?
    var contentLength: Int64?
    var encoding: String?
    var overrides: [(String, String?)] = []
    var refusal: (status: Int, fields: [String: String])?
    var incident: OriginResponse.Incident?
    var drip: (bytes: Int, every: Duration)?
    var closes = false

    // Decided.
    var status = 200
    var body: Range<Int64> = 0..<0
    var lines: [(String, String)] = []

    init(request: OriginResponse.Request, resource: OriginResource?) {
        self.request = request
        exists = resource != nil
        content = resource?.content ?? .data(Data())
        etag = resource?.etag
        lastModified = resource?.lastModified
        contentType = resource?.contentType
        extra = resource?.fields ?? [:]
    }

    mutating func apply(_ behaviour: OriginBehaviour) {
        switch behaviour {
        case .ignoresRanges(let acceptRanges):
            ignoresRanges = true
            self.acceptRanges = acceptRanges
        case .partialToEverything: alwaysPartial = true
        case .ignoresIfRange: ignoresIfRange = true
        case .contentRangeShifted(let bytes): shift = bytes
        case .contentRangeTotal(let total): self.total = .some(total)
        case .contentRange(let text): contentRange = .some(text)
        case .bodyLonger(let bytes): longer = bytes
        case .rangeLimit(let bytes): limit = bytes
        case .rangeNotSatisfiable: unsatisfiable = true
        case .noLength(let framing): self.framing = framing
        case .contentLength(let bytes): contentLength = bytes
        case .etag(let text): etag = text
        case .noValidators:
            etag = nil
            lastModified = nil
        case .version(let content, let etag):
            self.content = content
            self.etag = etag
        case .gzip: encoding = "gzip"
        case .field(let name, let value): overrides.append((name, value))
        case .status(let status, let fields): refusal = (status, fields)
        case .requiresField(let name, let value, let status):
            let given = HTTPField.Name(name).flatMap { request.fields[$0] }
            if given != value { refusal = (status, status == 401 ? ["WWW-Authenticate": "Bearer"] : [:]) }
        case .requiresQuery(let query, let status): if request.query != query { refusal = (status, [:]) }
        case .redirect(let location, let status): refusal = (status, ["Location": location])
        case .cut(let after): incident = .init(kind: .cut, after: after)
        case .reset(let after): incident = .init(kind: .reset, after: after)
        case .stall(let after): incident = .init(kind: .stall, after: after)
        case .drip(let bytes, let every): drip = (max(1, bytes), every)
        case .closes: closes = true
        }
    }

    mutating func decide() {
        if !exists {
            refuse(404, [:])
        } else if !["GET", "HEAD"].contains(request.method) {
            refuse(405, ["Allow": "GET, HEAD"])
        } else if let refusal {
            refuse(refusal.status, refusal.fields)
        } else {
            response()
        }
        for (name, value) in overrides {
            lines.removeAll { $0.0.lowercased() == name.lowercased() }
            if let value { lines.append((name, value)) }
        }
    }

    private mutating func refuse(_ status: Int, _ fields: [String: String]) {
        self.status = status
        let text = HTTPResponse.Status(code: status).reasonPhrase + "\n"
        content = .data(Data(text.utf8))
        body = 0..<content.length
        lines = fields.sorted { $0.key < $1.key } + [("Content-Type", "text/plain")]
    }

    /// A `GET` or `HEAD` of something that is there: RFC 9110 §13.2.2, then §14.
    private mutating func response() {
        if encoding == "gzip" { content = .data(StoredGzip.encode(content.bytes(0..<content.length))) }
        let length = content.length
        if let etag { lines.append(("ETag", etag)) }
        if let lastModified { lines.append(("Last-Modified", HTTPDate.text(lastModified))) }
        if let contentType { lines.append(("Content-Type", contentType)) }
        if let encoding { lines.append(("Content-Encoding", encoding)) }
        if let acceptRanges { lines.append(("Accept-Ranges", acceptRanges)) }
        for field in extra { lines.append((field.name.rawName, field.value)) }

        if let asked = request.fields[.ifNoneMatch], let etag, asked == etag || asked == "*" {
            status = 304
            return
        }
        let totalText = total.map { $0.map { String($0) } ?? "*" } ?? String(length)
        var range = ignoresRanges ? nil : request.fields[.range].flatMap { AskedRange($0) }
        if !ignoresIfRange, let condition = request.fields[.ifRange], !matches(condition) { range = nil }
        if unsatisfiable { range = .from(length) }
        if range == nil, alwaysPartial { range = .from(0) }

        guard let range else {
            body = 0..<max(0, length + longer)
            return
        }
        guard var sent = range.resolve(length) else {
            status = 416
            lines.append(("Content-Range", "bytes */\(totalText)"))
            return
        }
        status = 206
        sent = sent.lowerBound..<min(sent.upperBound, sent.lowerBound + min(limit, Int64.max - sent.lowerBound))
        let text = "bytes \(sent.lowerBound + shift)-\(sent.upperBound - 1 + shift)/\(totalText)"
        if let line = contentRange ?? text { lines.append(("Content-Range", line)) }
        body = sent.lowerBound..<max(sent.lowerBound, sent.upperBound + longer)
    }

    /// `If-Range` by strong comparison (RFC 9110 §13.1.5).
    private func matches(_ condition: String) -> Bool {
        if condition == etag { return !condition.hasPrefix("W/") }
        return lastModified.map { condition == HTTPDate.text($0) } ?? false
    }
}

/// A `Range` field with one range, as the origin understands it. More than one is responded like none (RFC 9110 §14.2).
enum AskedRange: Equatable {
    case bounded(Int64, Int64)
    case from(Int64)
    case last(Int64)

    init?(_ text: String) {
        guard text.lowercased().hasPrefix("bytes=") else { return nil }
        let spec = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard spec.count == 2, spec.joined().allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        switch (spec[0].isEmpty, spec[1].isEmpty) {
        case (true, true): return nil
        case (true, false): self = .last(Int64(spec[1]) ?? .max)
        case (false, true): self = .from(Int64(spec[0]) ?? .max)
        case (false, false):
            let (first, last) = (Int64(spec[0]) ?? .max, Int64(spec[1]) ?? .max)
            guard first <= last else { return nil }
            self = .bounded(first, last)
        }
    }

    /// The half-open range in media of `length` bytes, or nil for 416.
    func resolve(_ length: Int64) -> Range<Int64>? {
        switch self {
        case .bounded(let first, let last): first < length ? first..<(min(last, length - 1) + 1) : nil
        case .from(let first): first < length ? first..<length : nil
        case .last(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
        }
    }
}
