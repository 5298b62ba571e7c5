import Foundation
package import HTTPTypes

/// The response of an origin to one request. This type determines the response, and ``OriginConnection`` sends it.
///
/// This type uses neither sockets nor a clock, because the date is a parameter. The origin does not use the package's
/// parser for `Range` and `If-Range`. Otherwise, a mistake in one parser could hide a mistake in the other. Rules may
/// make the response inconsistent in any way.
package struct OriginResponse: Sendable {
    /// The framing that marks the end of a body without `Content-Length`.
    package enum Framing: Sendable {
        /// `Transfer-Encoding: chunked`.
        case chunked
        /// HTTP/1.0, in which the end of the connection marks the end of the body.
        case close
    }

    /// A fault after a number of body bytes (`after`), or before the headers if `after` is `nil`.
    package struct Incident: Sendable {
        /// The kind of incident: the connection is closed or reset, or the response stalls until it is released.
        package enum Kind: Sendable { case cut, reset, stall }
        package var kind: Kind
        package var after: Int64?

        package init(kind: Kind, after: Int64?) {
            self.kind = kind
            self.after = after
        }
    }

    /// The `Content-Range` in the headers, which may differ from the body (RFC 9110 §14.4).
    package struct StatedContentRange: Sendable {
        /// The half-open range of bytes, or `nil` in a 416 response.
        package var bytes: Range<Int64>?
        /// The total length, or `nil` for `*`.
        package var total: Int64?

        var text: String {
            let total = total.map { String($0) } ?? "*"
            return "bytes " + (bytes.map { "\($0.lowerBound)-\($0.upperBound - 1)" } ?? "*") + "/" + total
        }
    }

    /// The number of previous requests to the same path.
    package let index: Int
    package var status = 200
    /// The names and values of the header fields, including invalid fields.
    package private(set) var lines: [(name: String, value: String)] = []
    package var contentRange: StatedContentRange?
    /// The `Content-Length` if it differs from the length of the body.
    package var statedLength: Int64?
    /// The content from which the body is taken.
    package var content: OriginContent
    /// The range of `content` that is sent. It is empty for responses without a body.
    package var body: Range<Int64> = 0..<0
    package var framing: Framing?
    /// Whether the connection closes after the last byte.
    package var closes = false
    /// The incident before the end of the response, if any.
    package var incident: Incident?
    package var pace: OriginPace?
    /// A function that changes the text of the status line and the fields before it is sent, or `nil` to send the text
    /// unchanged.
    package var rewriteHead: (@Sendable (String) -> [UInt8])?
    /// The bytes to send instead of headers and body, if any.
    private(set) var raw: [UInt8]?
    /// Whether the body is sent in chunks.
    private(set) var isChunked = false
    private var version = "1.1"

    /// Creates the response to a request for a resource. If the resource is `nil`, the status is 404.
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

    /// Sets a field, or removes it if the value is `nil`.
    package mutating func setField(_ name: String, _ value: String?) {
        if name.lowercased() == "content-range" { contentRange = nil }
        lines.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { lines.append((name, value)) }
    }

    /// The status and fields, without invalid fields.
    package var response: HTTPResponse {
        var fields = HTTPFields()
        for (name, value) in lines {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return HTTPResponse(status: .init(code: status), headerFields: fields)
    }

    /// The status line, the fields and the empty line, or the raw bytes.
    var head: [UInt8] { raw ?? rewriteHead?(headText) ?? Array(headText.utf8) }

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
        // Conditions are evaluated before ranges (RFC 9110 §13.2.2).
        if let asked = request.headerFields[.ifNoneMatch], let etag = resource.etag, asked == etag || asked == "*" {
            status = 304
            return
        }
        let length = content.length
        var range = request.headerFields[.range].flatMap { RequestedRange($0) }
        if let condition = request.headerFields[.ifRange], !resource.matches(condition) { range = nil }
        guard let range else {
            body = 0..<length
            return
        }
        if let bytes = range.resolve(length) {
            status = 206
            body = bytes
            contentRange = StatedContentRange(bytes: bytes, total: length)
        } else {
            status = 416
            contentRange = StatedContentRange(bytes: nil, total: length)
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

    /// Sets the framing of the body (RFC 9112 §6) and the date.
    private mutating func frame(_ request: OriginRequest, now: Date) {
        if let contentRange { lines.append(("Content-Range", contentRange.text)) }
        let length = statedLength ?? Int64(body.count)
        if !request.keepsAlive || statedLength != nil { closes = true }
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
    /// Returns whether the condition of `If-Range` is met, by strong comparison (RFC 9110 §13.1.5).
    fileprivate func matches(_ condition: String) -> Bool {
        if condition == etag { return !condition.hasPrefix("W/") }
        return lastModified.map { condition == HTTPDate.text($0) } ?? false
    }
}

/// A `Range` field with one range, as the origin parses it. A field with several ranges is ignored (RFC 9110 §14.2).
package enum RequestedRange: Equatable {
    case bounded(Int64, Int64)
    case from(Int64)
    case last(Int64)

    package init?(_ text: String) {
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

    /// Returns the half-open range in media of `length` bytes, or `nil` for a 416 response.
    package func resolve(_ length: Int64) -> Range<Int64>? {
        switch self {
        case .bounded(let first, let last): first < length ? first..<(min(last, length - 1) + 1) : nil
        case .from(let first): first < length ? first..<length : nil
        case .last(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
        }
    }
}

/// The date format of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT` (IMF-fixdate, RFC 9110 §5.6.7).
enum HTTPDate {
    static func text(_ date: Date) -> String {
        let seconds = Int64(date.timeIntervalSince1970.rounded(.down))
        let days = Int64((Double(seconds) / 86400).rounded(.down))
        let time = seconds - days * 86400
        // Civil date from days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
        let z = days + 719_468
        let era = (z >= 0 ? z : z - 146_096) / 146_097
        let dayOfEra = z - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shifted + 2) / 5 + 1
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int((days % 7 + 7) % 7)]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(weekday), \(two(day)) \(months[Int(month) - 1]) \(year) "
            + "\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }
}
