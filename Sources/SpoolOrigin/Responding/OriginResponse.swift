import Foundation
package import HTTPTypes

/// How an origin responds to one request: decided here, sent by ``OriginConnection``.
///
/// Pure: no socket, no clock (the date is given). The origin reads `Range` and `If-Range` by its own few lines and not
/// with the package's parser, so that one misreading cannot hide another. Rules may make it contradict itself in any way.
package struct OriginResponse: Sendable {
    /// How the end of the body is marked in place of a `Content-Length`.
    package enum Framing: Sendable {
        /// `Transfer-Encoding: chunked`.
        case chunked
        /// HTTP/1.0: the connection closes.
        case close
    }

    /// Something that happens after `after` body bytes, or before the head.
    package struct Incident: Sendable {
        /// The connection closes, or is reset, or nothing is sent until it is released.
        package enum Kind: Sendable { case cut, reset, stall }
        package var kind: Kind
        package var after: Int64?

        package init(kind: Kind, after: Int64?) {
            self.kind = kind
            self.after = after
        }
    }

    /// The `Content-Range` that is said, whatever is sent (RFC 9110 §14.4).
    package struct SaidRange: Sendable {
        /// The bytes, half-open; nil in a 416.
        package var bytes: Range<Int64>?
        /// The length of the whole; nil for `*`.
        package var total: Int64?

        var text: String {
            let total = total.map { String($0) } ?? "*"
            return "bytes " + (bytes.map { "\($0.lowerBound)-\($0.upperBound - 1)" } ?? "*") + "/" + total
        }
    }

    /// How many requests to the same URL came before the one that it responds to.
    package let index: Int
    package var status = 200
    /// Names and values of the head's fields, also ones that HTTP does not allow.
    package private(set) var lines: [(name: String, value: String)] = []
    package var contentRange: SaidRange?
    /// The `Content-Length` where that is not the length of the body.
    package var promisedLength: Int64?
    /// The bytes that the body is a part of.
    package var content: OriginContent
    /// The bytes of `content` that are really sent; empty for responses without a body.
    package var body: Range<Int64> = 0..<0
    package var framing: Framing?
    /// Whether the connection closes after the last byte.
    package var closes = false
    /// The incident before the end, if there is one.
    package var incident: Incident?
    package var pace: OriginPace?
    /// What goes out in place of head and body.
    private(set) var raw: [UInt8]?
    /// Whether the body goes out in chunks.
    private(set) var isChunked = false
    private var version = "1.1"

    /// Decides the response of a resource to a request; nil is a URL where nothing is.
    init(to request: OriginRequest, from resource: OriginResource?, now: Date) {
        index = request.index
        var request = request
        var resource = resource
        let rules = (resource?.rules ?? []).filter { $0.requests.contains(request.index) }
        if var prepared = resource {
            for rule in rules { rule.prepare(&request, &prepared) }
            resource = prepared
        }
        content = resource?.content ?? .data(Data())
        pace = resource?.pace
        if let raw = resource?.raw {
            self.raw = raw.bytes
            closes = raw.closes
            return
        }
        decide(request, resource)
        for rule in rules { rule.revise(&self) }
        frame(request, now: now)
    }

    /// Says this field, or leaves it out when nil is given.
    package mutating func setField(_ name: String, _ value: String?) {
        if name.lowercased() == "content-range" { contentRange = nil }
        lines.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { lines.append((name, value)) }
    }

    /// Status and fields; those that HTTP does not allow are missing.
    package var response: HTTPResponse {
        var fields = HTTPFields()
        for (name, value) in lines {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return HTTPResponse(status: .init(code: status), headerFields: fields)
    }

    /// Status line and fields with the empty line after them, as they go over the wire.
    var head: [UInt8] { raw ?? Array(headText.utf8) }

    private var headText: String {
        let reason = HTTPResponse.Status(code: status).reasonPhrase
        return "HTTP/\(version) \(status) \(reason)\r\n" + lines.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
    }

    // MARK: Deciding

    private mutating func decide(_ request: OriginRequest, _ resource: OriginResource?) {
        guard let resource else { return refuse(OriginRefusal(404)) }
        guard ["GET", "HEAD"].contains(request.method) else {
            return refuse(OriginRefusal(405, ["Allow": "GET, HEAD"]))
        }
        if let refusal = resource.refusal { return refuse(refusal) }
        describe(resource)
        // RFC 9110 §13.2.2, then §14.
        if let asked = request.headerFields[.ifNoneMatch], let etag = resource.etag, asked == etag || asked == "*" {
            status = 304
            return
        }
        let length = content.length
        var range = request.headerFields[.range].flatMap { AskedRange($0) }
        if let condition = request.headerFields[.ifRange], !resource.matches(condition) { range = nil }
        guard let range else {
            body = 0..<length
            return
        }
        if let bytes = range.resolve(length) {
            status = 206
            body = bytes
            contentRange = SaidRange(bytes: bytes, total: length)
        } else {
            status = 416
            contentRange = SaidRange(bytes: nil, total: length)
        }
    }

    private mutating func refuse(_ refusal: OriginRefusal) {
        status = refusal.status
        let text = HTTPResponse.Status(code: status).reasonPhrase + "\n"
        content = .data(Data(text.utf8))
        body = 0..<content.length
        lines = refusal.fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } + [("Content-Type", "text/plain")]
    }

    private mutating func describe(_ resource: OriginResource) {
        if let etag = resource.etag { lines.append(("ETag", etag)) }
        if let date = resource.lastModified { lines.append(("Last-Modified", HTTPDate.text(date))) }
        if let type = resource.contentType { lines.append(("Content-Type", type)) }
        lines.append(("Accept-Ranges", "bytes"))
        for field in resource.headerFields { lines.append((field.name.rawName, field.value)) }
    }

    /// Says how the body ends (RFC 9112 §6), and the date.
    private mutating func frame(_ request: OriginRequest, now: Date) {
        if let contentRange { lines.append(("Content-Range", contentRange.text)) }
        let length = promisedLength ?? Int64(body.count)
        if !request.keepsAlive || promisedLength != nil { closes = true }
        let hasBody = ![204, 304].contains(status)
        switch framing {
        case .chunked:
            lines.append(("Transfer-Encoding", "chunked"))
            isChunked = hasBody && request.method != "HEAD"
        case .close:
            version = "1.0"
            closes = true
        case nil:
            if hasBody { lines.append(("Content-Length", String(length))) }
        }
        if request.method == "HEAD" || !hasBody { body = 0..<0 }
        if closes { lines.append(("Connection", "close")) }
        lines.append(("Date", HTTPDate.text(now)))
    }
}

extension OriginResource {
    /// `If-Range` by strong comparison (RFC 9110 §13.1.5).
    fileprivate func matches(_ condition: String) -> Bool {
        if condition == etag { return !condition.hasPrefix("W/") }
        return lastModified.map { condition == HTTPDate.text($0) } ?? false
    }
}
