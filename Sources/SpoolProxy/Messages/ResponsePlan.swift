#if Proxy
import HTTPRanges
import HTTPTypes
import Spool

/// The head and the bytes of a version that a client receives.
///
/// The plan depends only on the request and the version's head (RFC 9110 §13.2.2, §14).
struct ResponsePlan: Sendable, Hashable {
    /// The bytes that are sent.
    enum Content: Sendable, Hashable {
        case none
        case whole(length: Int64?)
        case range(Range<Int64>)
        case multipart(MultipartByteRanges)

        /// The bytes for one reader, or `nil` if no reader or several readers are needed.
        var range: MediaRange? {
            switch self {
            case .whole: .all
            case .range(let range): .bytes(range)
            case .none, .multipart: nil
            }
        }
    }

    let head: ResponseHead
    let content: Content
    /// The value of the `Content-Range` field, if the head has one.
    let contentRange: ContentRange?

    /// Creates the plan of a response.
    ///
    /// - Parameters:
    ///   - sendsParts: Whether a response may consist of several parts. Otherwise, a request for several parts gets the
    ///     whole representation.
    ///   - boundary: A random boundary between the parts, if there are several.
    ///   - now: The current time, in seconds since 1970.
    init(
        for request: RequestHead, _ response: StoredResponse, sendsParts: Bool = true, now: Int64,
        boundary: @autoclosure () -> String
    ) {
        var fields = response.fields
        fields[.age] = String(response.age(at: now))
        // Conditions and ranges apply only to status 200. Responses with other statuses are sent unchanged.
        guard response.status == 200 else {
            self.init(ResponseHead(response.status, fields), .whole(length: response.length))
            return
        }
        fields[.acceptRanges] = response.length == nil ? nil : "bytes"
        let asked = request.fields.all
        let method: HTTPRequest.Method = request.method == .head ? .head : .get
        switch Preconditions.evaluate(asked, method: method, stored: response.fields) {
        case .proceed: self = Self.ranges(asked, request, response, fields, sendsParts: sendsParts, boundary)
        case .notModified: self.init(ResponseHead(304, fields.confirming), .none)
        case .failed: self.init(ResponseHead(412, [:]), .none)
        }
    }

    private init(_ head: ResponseHead, _ content: Content, _ contentRange: ContentRange? = nil) {
        var head = head
        if let contentRange { head.fields[.contentRange] = contentRange.text }
        self.head = head
        self.content = content
        self.contentRange = contentRange
    }

    private static func ranges(
        _ asked: HTTPFields, _ request: RequestHead, _ response: StoredResponse, _ fields: HTTPFields,
        sendsParts: Bool, _ boundary: () -> String
    ) -> ResponsePlan {
        let whole = ResponsePlan(ResponseHead(200, fields), .whole(length: response.length))
        guard request.method == .get, let length = response.length, let header = RangeHeader(fields: asked) else {
            return whole
        }
        guard Preconditions.ifRangeHolds(asked, validator: response.validator) else { return whole }
        let fields = EndToEndFields.withoutMessageDigests(fields)
        switch header.resolve(length: length) {
        case .whole: return whole
        case .unsatisfiable:
            var fields = fields.confirming
            fields[.acceptRanges] = "bytes"
            return ResponsePlan(ResponseHead(416, fields), .none, ContentRange(range: nil, length: length))
        case .partial(let ranges) where ranges.count == 1:
            let part = ContentRange(range: ranges[0], length: length)
            return ResponsePlan(ResponseHead(206, fields), .range(ranges[0]), part)
        case .partial(let ranges):
            guard sendsParts else { return whole }
            let parts = MultipartByteRanges(
                ranges: ranges, length: length, partContentType: fields[.contentType], boundary: boundary())
            guard parts.contentLength != nil else { return whole }
            var fields = fields
            fields[.contentType] = parts.contentType
            return ResponsePlan(ResponseHead(206, fields), .multipart(parts))
        }
    }
}

extension HTTPFields {
    /// The fields of a 200 response that are repeated in a 304 or 416 response (RFC 9110 §15.4.5), without those that
    /// describe a body.
    fileprivate var confirming: HTTPFields {
        var fields = self
        for name in [HTTPField.Name.contentType, .contentEncoding, .contentLanguage, .acceptRanges] {
            fields[name] = nil
        }
        return fields
    }
}
#endif
