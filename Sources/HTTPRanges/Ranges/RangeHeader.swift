package import HTTPTypes

/// The bytes that a client requests: a `Range` request header (RFC 9110 §14.2).
///
/// The ranges in the text of a header include both ends (`bytes=0-99`). The results of ``resolve(length:limit:)`` are
/// half-open (`0..<100`), like every range in code. `If-Range` is not evaluated: call ``Validator/satisfies(ifRange:)``
/// first, and send the whole resource if it returns false.
package struct RangeHeader: Sendable, Hashable {
    /// One element of the header.
    package enum Specifier: Sendable, Hashable {
        /// The form `first-last`, both included. A position after 2^53 is read as 2^53, which no resource reaches.
        case bounded(first: Int64, last: Int64)
        /// The form `first-`: from that offset to the end.
        case from(Int64)
        /// The form `-count`: the last `count` bytes.
        case suffix(Int64)
    }

    /// The elements, in the order of the header.
    package var specifiers: [Specifier]

    /// Creates a header with these elements.
    package init(specifiers: [Specifier]) {
        self.specifiers = specifiers
    }

    /// Parses the value of a header. Time and memory are proportional to its length.
    ///
    /// The result is `nil` if the value is malformed, names a unit other than bytes, or contains a range that ends
    /// before its start. Such a header is ignored, and the whole resource is sent (RFC 9110 §14.2).
    package init?(parsing text: String) {
        let value = FieldText.trimmed(text[...]).utf8
        guard let equals = value.firstIndex(of: UInt8(ascii: "=")),
            FieldText.equalIgnoringCase(value[..<equals], "bytes".utf8)
        else { return nil }
        var specifiers: [Specifier] = []
        for element in value[value.index(after: equals)...].split(separator: UInt8(ascii: ",")) {
            let trimmed = FieldText.trimmed(Substring(element)).utf8
            if trimmed.isEmpty { continue }  // Lists may have empty elements (RFC 9110 §5.6.1.2).
            guard let specifier = RangeHeader.specifier(trimmed) else { return nil }
            specifiers.append(specifier)
        }
        guard !specifiers.isEmpty else { return nil }
        self.specifiers = specifiers
    }

    /// Parses the `Range` field of a request. The result is also `nil` if the field is missing or occurs several times.
    package init?(fields: HTTPFields) {
        let values = fields[values: .range]
        guard values.count == 1, let value = values.first else { return nil }
        self.init(parsing: value)
    }

    private static func specifier(_ text: Substring.UTF8View) -> Specifier? {
        guard let dash = text.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let first = text[..<dash]
        let last = text[text.index(after: dash)...]
        if first.isEmpty { return FieldText.clampedOffset(last).map { .suffix($0) } }
        guard let firstPosition = FieldText.clampedOffset(first) else { return nil }
        if last.isEmpty { return .from(firstPosition) }
        guard let lastPosition = FieldText.clampedOffset(last), firstPosition <= lastPosition else { return nil }
        return .bounded(first: firstPosition, last: lastPosition)
    }

    /// The bytes that a `Range` header requests, once the length is known.
    package enum Resolution: Sendable, Hashable {
        /// Send the whole resource, with status 200.
        case whole
        /// Send these ranges, each non-empty and within the length, with status 206, as `multipart/byteranges` if there
        /// are several.
        case partial([Range<Int64>])
        /// No requested byte exists: send status 416 with `Content-Range: bytes */length`.
        case unsatisfiable
    }

    /// Returns the requested bytes of a resource of `length` bytes.
    ///
    /// Ranges are limited to the length. Ranges past the end, and empty suffixes, are ignored; if no range remains, the
    /// request is unsatisfiable (RFC 9110 §14.1.2). If ranges overlap or touch, all are sorted and joined; otherwise
    /// they stay in the requested order (§15.3.7.2). If there are more than `limit` ranges, the whole resource is sent
    /// instead (§14.2). Any suffix of an empty resource refers to the whole resource.
    package func resolve(length: Int64, limit: Int = 16) -> Resolution {
        let length = max(0, length)
        var ranges: [Range<Int64>] = []
        for specifier in specifiers {
            switch specifier {
            case .bounded(let first, let last):
                guard first >= 0, last >= first, first < length else { continue }
                ranges.append(first..<(last < length ? last + 1 : length))
            case .from(let first):
                guard first >= 0, first < length else { continue }
                ranges.append(first..<length)
            case .suffix(let count):
                guard count > 0 else { continue }
                if length == 0 { return .whole }
                ranges.append(max(0, length - count)..<length)
            }
        }
        guard !ranges.isEmpty else { return .unsatisfiable }
        let joined = RangeHeader.joined(ranges)
        guard joined.count <= max(1, limit) else { return .whole }
        return .partial(joined.count == ranges.count ? ranges : joined)
    }

    /// Returns `ranges` in ascending order, with overlapping or adjacent ones joined.
    private static func joined(_ ranges: [Range<Int64>]) -> [Range<Int64>] {
        var joined: [Range<Int64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = joined.last, range.lowerBound <= last.upperBound {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }
}

extension RangeHeader {
    /// Returns the value of a header that requests `range`, for example `bytes=0-99` for `0..<100`.
    ///
    /// Headers can't express an empty range. For an empty range, the value requests the byte at its start. An offset
    /// below 0 requests byte 0.
    package static func text(for range: Range<Int64>) -> String {
        let first = max(0, range.lowerBound)
        let last = range.upperBound > first ? range.upperBound - 1 : first
        return "bytes=\(first)-\(last)"
    }

    /// Returns the value of a header that requests all bytes from `offset` to the end, for example `bytes=100-`.
    package static func text(from offset: Int64) -> String {
        "bytes=\(max(0, offset))-"
    }

    /// The value of the header, as sent.
    package var text: String {
        let elements = specifiers.map { specifier in
            switch specifier {
            case .bounded(let first, let last): "\(first)-\(last)"
            case .from(let first): "\(first)-"
            case .suffix(let count): "-\(count)"
            }
        }
        return "bytes=" + elements.joined(separator: ", ")
    }
}
