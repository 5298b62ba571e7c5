#if Proxy
import HTTPRanges
import HTTPTypes
import Spool

/// What a client is sent of a version: which head, and which of its bytes.
///
/// Pure: follows from the request and the version's head (RFC 9110 §13.2.2, §14).
struct ResponsePlan: Sendable, Hashable {
    /// The bytes that are sent.
    enum Content: Sendable, Hashable {
        case none
        case whole(length: Int64?)
        case range(Range<Int64>)
        case multipart(MultipartByteRanges)

        /// The bytes that one reader brings; nil where none is wanted, or several.
        var range: MediaRange? {
            switch self {
            case .whole: .all
            case .range(let range): .bytes(range)
            case .none, .multipart: nil
            }
        }
    }

    var head: ResponseHead
    var content: Content

    /// - Parameters:
    ///   - boundary: Between the parts, if there are several: random.
    ///   - now: In seconds since 1970.
    init(
        for request: RequestHead, _ response: StoredResponse, now: Int64, boundary: @autoclosure () -> String
    ) {
        var fields = response.fields
        fields[.age] = String(response.age(at: now))
        // A response of another status is told as it is: conditions and ranges are about the resource.
        guard response.status == 200 else {
            self.init(head: ResponseHead(response.status, fields), content: .whole(length: response.length))
            return
        }
        fields[.acceptRanges] = response.length == nil ? nil : "bytes"
        let asked = request.fields.all
        let method: HTTPRequest.Method = request.method == .head ? .head : .get
        switch Preconditions.evaluate(asked, method: method, stored: response.fields) {
        case .proceed: break
        case .notModified:
            self.init(head: ResponseHead(304, fields.confirming), content: .none)
            return
        case .failed:
            self.init(head: ResponseHead(412, [:]), content: .none)
            return
        }
        self = Self.ranges(asked, request, response, fields, boundary)
    }

    private init(head: ResponseHead, content: Content) {
        self.head = head
        self.content = content
    }

    private static func ranges(
        _ asked: HTTPFields, _ request: RequestHead, _ response: StoredResponse, _ fields: HTTPFields,
        _ boundary: () -> String
    ) -> ResponsePlan {
        var fields = fields
        let whole = ResponsePlan(head: ResponseHead(200, fields), content: .whole(length: response.length))
        guard request.method == .get, let length = response.length, let header = RangeHeader(fields: asked) else {
            return whole
        }
        guard Preconditions.ifRangeHolds(asked, validator: response.validator) else { return whole }
        switch header.resolve(length: length) {
        case .whole: return whole
        case .unsatisfiable:
            var head = ResponseHead(416, fields.confirming)
            head.fields[.contentRange] = ContentRange(range: nil, length: length).text
            head.fields[.acceptRanges] = "bytes"
            return ResponsePlan(head: head, content: .none)
        case .partial(let ranges) where ranges.count == 1:
            fields[.contentRange] = ContentRange(range: ranges[0], length: length).text
            return ResponsePlan(head: ResponseHead(206, fields), content: .range(ranges[0]))
        case .partial(let ranges):
            let parts = MultipartByteRanges(
                ranges: ranges, length: length, partContentType: fields[.contentType], boundary: boundary())
            guard parts.contentLength != nil else { return whole }
            fields[.contentType] = parts.contentType
            return ResponsePlan(head: ResponseHead(206, fields), content: .multipart(parts))
        }
    }
}

extension HTTPFields {
    /// What a 304, or a 416, repeats of a 200 (RFC 9110 §15.4.5): nothing that describes a body.
    fileprivate var confirming: HTTPFields {
        var fields = self
        for name in [HTTPField.Name.contentType, .contentEncoding, .contentLanguage, .acceptRanges] {
            fields[name] = nil
        }
        return fields
    }
}
#endif
