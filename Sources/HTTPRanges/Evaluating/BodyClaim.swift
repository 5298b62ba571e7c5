import ByteRanges
package import HTTPTypes

/// The claims of a 200 or 206 about its own body, before it is compared with anything stored.
///
/// Reads status, `Content-Range` and `Content-Length` against each other. Where they disagree, it keeps what holds
/// under every reading, and says so; where nothing does, it is refused.
struct BodyClaim {
    /// Where the first byte belongs.
    var offset: Int64
    /// Where the body ends, if the head says it.
    var end: Int64?
    /// The length of the whole, if the head says it.
    var length: Int64?
    /// Why only part of what the head says is believed; nil if the head is consistent.
    var discrepancy: String?

    /// Why a head can't be believed: a sentence.
    struct Contradiction: Error {
        var reason: String
    }

    /// A 206's claim (RFC 9110 §15.3.7).
    init(partial fields: HTTPFields) throws(Contradiction) {
        if fields[.contentType].map({ BodyClaim.isMultipart($0) }) ?? false {
            throw Contradiction(reason: "several parts (multipart/byteranges) where one range was asked for")
        }
        guard let contentRange = try BodyClaim.contentRange(fields) else {
            throw Contradiction(reason: "no Content-Range that can be read")
        }
        guard let range = contentRange.range else {
            throw Contradiction(reason: "its Content-Range names no bytes: \(contentRange.text)")
        }
        self.init(offset: range.lowerBound, end: range.upperBound, length: contentRange.length)
        let count = range.upperBound - range.lowerBound
        guard let bodyLength = try BodyClaim.contentLength(fields), bodyLength != count else { return }
        let mismatch = "Content-Range \(contentRange.text) but Content-Length \(bodyLength)"
        if bodyLength == 0 {
            throw Contradiction(reason: mismatch)
        } else if bodyLength < count {
            // As if cut: what comes starts where it says.
            end = range.lowerBound + bodyLength
        } else if range.lowerBound > 0 {
            // More than it says: most likely the whole, so its first byte is not where it says.
            throw Contradiction(reason: mismatch)
        }
        discrepancy = mismatch
    }

    /// A 200's claim: the whole, from byte 0.
    init(whole fields: HTTPFields) throws(Contradiction) {
        let bodyLength = try BodyClaim.contentLength(fields)
        self.init(offset: 0, end: bodyLength, length: bodyLength)
        // Content-Range means nothing in a 200 (RFC 9110 §14.4); but some origins send a part under this status, and
        // only a body as long as the whole is not that.
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

    /// The single `Content-Range`, or `nil` if it is absent or malformed.
    ///
    /// - Throws: ``Contradiction`` if there are several, or if it contains a number larger than 2^53.
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

    /// The body's length in bytes as the head announces it; nil if it doesn't (RFC 9110 §8.6, RFC 9112 §6.3).
    static func contentLength(_ fields: HTTPFields) throws(Contradiction) -> Int64? {
        if fields.contains(.transferEncoding) { return nil }  // which then frames the body
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
    /// The length of the body in bytes as `Content-Length` states it.
    ///
    /// `nil` if it is absent, malformed or larger than 2^53, if several values differ, or if there is a `Transfer-Encoding`.
    package var contentLength: Int64? {
        // Callers only relay or compare the length, so a length that can't be used counts as unknown.
        try? BodyClaim.contentLength(self)
    }
}
