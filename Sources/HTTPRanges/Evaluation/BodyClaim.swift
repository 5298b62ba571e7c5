import ByteRanges
package import HTTPTypes

/// The description of a body in the headers of a 200 or 206, before it is compared with stored bytes.
///
/// This type checks status, `Content-Range` and `Content-Length` for consistency. If they disagree, it uses the part
/// that is correct in every interpretation, and reports the discrepancy. If there is no such part, it rejects the
/// headers.
struct BodyClaim {
    /// The offset of the first byte.
    var offset: Int64
    /// The end of the body, if the headers contain it.
    var end: Int64?
    /// The length of the whole resource, if the headers contain it.
    var length: Int64?
    /// The reason why only part of the headers is used; `nil` if they are consistent.
    var discrepancy: String?

    /// An error that states, in a sentence, why the headers can't be used.
    struct Contradiction: Error {
        var reason: String
    }

    /// Creates the claim from a 206 (RFC 9110 §15.3.7).
    ///
    /// Some servers send a malformed `Content-Range`, or none. The body is then used if its length proves its position.
    ///
    /// - Parameters:
    ///   - requestedStart: The first requested byte; `nil` if it is unknown.
    ///   - requestedEnd: The end of the requested range; `nil` for an open end.
    init(partial fields: HTTPFields, requestedStart: Int64?, requestedEnd: Int64?) throws(Contradiction) {
        if fields[.contentType].map({ BodyClaim.isMultipart($0) }) ?? false {
            throw Contradiction(reason: "several parts (multipart/byteranges) for one requested range")
        }
        guard let contentRange = try BodyClaim.contentRange(fields) else {
            guard let requestedStart,
                let claim = try BodyClaim(partial: fields, requestedFrom: requestedStart, to: requestedEnd)
            else { throw Contradiction(reason: "no valid Content-Range") }
            self = claim
            return
        }
        guard let range = contentRange.range else {
            throw Contradiction(reason: "Content-Range without bytes: \(contentRange.text)")
        }
        self.init(offset: range.lowerBound, end: range.upperBound, length: contentRange.length)
        let count = range.upperBound - range.lowerBound
        guard let bodyLength = try BodyClaim.contentLength(fields), bodyLength != count else { return }
        let mismatch = "Content-Range \(contentRange.text) but Content-Length \(bodyLength)"
        if bodyLength == 0 {
            throw Contradiction(reason: mismatch)
        } else if bodyLength < count {
            // The body is treated as truncated, because its start is correct.
            end = range.lowerBound + bodyLength
        } else if range.lowerBound > 0 {
            // A longer body is most likely the whole resource, so its first byte is not at the stated offset.
            throw Contradiction(reason: mismatch)
        }
        discrepancy = mismatch
    }

    /// Creates the claim from a 206 without a valid `Content-Range`; `nil` if nothing proves the position of its body.
    private init?(partial fields: HTTPFields, requestedFrom start: Int64, to end: Int64?) throws(Contradiction) {
        guard let count = try BodyClaim.contentLength(fields), count > 0, start <= NumberLimits.byteOffset - count
        else {
            return nil
        }
        let stated = fields[values: .contentRange].first.flatMap { ContentRange.startAndLength(inMalformed: $0) }
        if let stated {
            guard stated.start == start, start + count <= min(end ?? .max, stated.length ?? .max) else { return nil }
        } else {
            guard start + count == end else { return nil }
        }
        self.init(offset: start, end: start + count, length: stated?.length)
    }

    /// Creates the claim from a 200: the whole resource, from byte 0.
    init(whole fields: HTTPFields) throws(Contradiction) {
        let bodyLength = try BodyClaim.contentLength(fields)
        self.init(offset: 0, end: bodyLength, length: bodyLength)
        // Content-Range has no meaning in a 200 (RFC 9110 §14.4), but some origins send a part with this status. The
        // body is treated as a part unless it is as long as the whole resource.
        guard let contentRange = try BodyClaim.contentRange(fields), let range = contentRange.range else { return }
        let isWhole = range.lowerBound == 0 && range.upperBound == contentRange.length
        if isWhole, bodyLength == nil || bodyLength == contentRange.length { return }
        let lengthText = bodyLength.map { "Content-Length \($0)" } ?? "no Content-Length"
        let mismatch = "Content-Range \(contentRange.text) and \(lengthText)"
        guard let bodyLength, bodyLength == contentRange.length else { throw Contradiction(reason: mismatch) }
        discrepancy = mismatch
    }

    private init(offset: Int64, end: Int64?, length: Int64?) {
        self.offset = offset
        self.end = end
        self.length = length
    }

    /// Returns the single `Content-Range`, or `nil` if it is absent or malformed.
    ///
    /// - Throws: ``Contradiction`` if there are several fields, or if a number in the field is larger than 2^53.
    static func contentRange(_ fields: HTTPFields) throws(Contradiction) -> ContentRange? {
        let values = fields[values: .contentRange]
        guard values.count <= 1 else { throw Contradiction(reason: "\(values.count) Content-Range fields") }
        guard let value = values.first else { return nil }
        do {
            return try ContentRange(checking: value)
        } catch {
            throw tooLarge("Content-Range")
        }
    }

    private static func tooLarge(_ field: String) -> Contradiction {
        Contradiction(
            reason: "\(field) exceeds \(NumberLimits.byteOffset) bytes, the size of the largest supported resource")
    }

    /// Returns the body's length in bytes; `nil` if the headers don't contain it (RFC 9110 §8.6, RFC 9112 §6.3).
    static func contentLength(_ fields: HTTPFields) throws(Contradiction) -> Int64? {
        if fields.contains(.transferEncoding) { return nil }  // This field frames the body instead.
        let values = fields[values: .contentLength].flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false)
        }
        guard let first = values.first else { return nil }
        func read(_ text: Substring) -> Int64? {
            FieldText.digits(FieldText.trimmed(text).utf8, limit: NumberLimits.byteOffset + 1)
        }
        guard let length = read(first), values.allSatisfy({ read($0) == length }) else {
            throw Contradiction(reason: "Content-Length is not a number, or has several values that differ")
        }
        guard length <= NumberLimits.byteOffset else { throw tooLarge("Content-Length") }
        return length
    }

    private static func isMultipart(_ contentType: String) -> Bool {
        FieldText.equalIgnoringCase(FieldText.trimmed(contentType[...]).utf8.prefix(20), "multipart/byteranges".utf8)
    }
}

extension HTTPFields {
    /// The value of `Content-Range`, or `nil` if the field is missing or malformed.
    package var parsedContentRange: ContentRange? { self[.contentRange].flatMap { ContentRange(parsing: $0) } }

    /// The length of the body in bytes as `Content-Length` states it.
    ///
    /// The value is `nil` if the field is absent, malformed or larger than 2^53, if several values differ, or if there
    /// is a `Transfer-Encoding`.
    package var contentLength: Int64? {
        // Callers only relay or compare the length, so a length that can't be used counts as unknown.
        try? BodyClaim.contentLength(self)
    }
}

/// A check of whether the headers of a response define its kind and the end of its body unambiguously (RFC 9112 §6).
///
/// ``PartialResponse`` decides how to use the body.
package enum ResponseFraming {
    /// Returns why a final response with these headers can't be used, as the end of a sentence; `nil` if it can be
    /// used.
    package static func problem(_ head: HTTPResponse) -> String? {
        let fields = head.headerFields
        guard (200...599).contains(head.status.code) else {
            return "responded with the invalid status \(head.status.code)"
        }
        let codings = fields[values: .transferEncoding].flatMap { FieldText.elements($0) }
        guard codings.isEmpty || codings.count == 1 && FieldText.equalIgnoringCase(codings[0].utf8, "chunked".utf8)
        else { return "sent a body with a Transfer-Encoding other than chunked" }
        do {
            var lengths = fields
            lengths[.transferEncoding] = nil
            _ = try BodyClaim.contentLength(lengths)
        } catch {
            return "sent contradictory headers: \(error.reason)"
        }
        return nil
    }
}
