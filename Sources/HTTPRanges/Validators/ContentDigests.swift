package import HTTPTypes

/// The hashes of the whole representation in the headers of a response. They can be used to verify a file from another
/// source.
///
/// This type parses `Repr-Digest` (RFC 9530 §3), `Digest` (RFC 3230), `Content-MD5` (RFC 1864), and an `ETag` that may
/// be an MD5. It ignores `Content-Digest`, which applies to the body of the message. That body is empty for `HEAD`.
/// Invalid values are ignored.
package struct ContentDigests: Sendable, Hashable {
    /// A hash function.
    package enum Algorithm: Sendable, Hashable, CaseIterable {
        case sha512
        case sha256
        case md5

        /// The number of bytes in a hash.
        package var byteCount: Int {
            switch self {
            case .sha512: 64
            case .sha256: 32
            case .md5: 16
            }
        }
    }

    /// The hash that the origin states for each function.
    package private(set) var claimed: [Algorithm: [UInt8]] = [:]
    /// The bytes of an entity tag that consists of 32 hexadecimal digits.
    ///
    /// If the resource was uploaded to S3 or a compatible service in one part, the tag is the MD5 of the whole
    /// resource. Other services may use a different value, so a mismatch does not prove that the bytes are wrong.
    package private(set) var entityTag: [UInt8]?

    /// Parses the fields of a response.
    package init(fields: HTTPFields) {
        let names = ["sha-512": Algorithm.sha512, "sha-256": .sha256, "md5": .md5]
        // The most recently standardized field is parsed last, and takes precedence.
        for text in Self.values("Content-MD5", in: fields) { note(.md5, FieldText.trimmed(text[...])) }
        for element in Self.values("Digest", in: fields).flatMap({ FieldText.elements($0) }) {
            let (name, value) = Self.parts(element)
            if let algorithm = names[name] { note(algorithm, value) }
        }
        for element in Self.values("Repr-Digest", in: fields).flatMap({ FieldText.elements($0) }) {
            let (name, value) = Self.parts(element)
            // The value is a byte sequence (RFC 9651 §3.3.5), optionally with parameters.
            let pieces = value.split(separator: ":", omittingEmptySubsequences: false)
            if let algorithm = names[name], pieces.count == 3, pieces[0].isEmpty { note(algorithm, pieces[1]) }
        }
        let tag = fields[.eTag].flatMap { EntityTag(parsing: $0) }
        if let tag, !tag.isWeak, tag.value.utf8.count == 32 { entityTag = Self.bytes(ofHexadecimal: tag.value) }
    }

    private mutating func note(_ algorithm: Algorithm, _ text: Substring) {
        guard let bytes = Self.bytes(ofBase64: text), bytes.count == algorithm.byteCount else { return }
        claimed[algorithm] = bytes
    }

    private static func values(_ name: String, in fields: HTTPFields) -> [String] {
        HTTPField.Name(name).map { fields[values: $0] } ?? []
    }

    /// Returns the text before the first `=`, in lower case, and the text after it.
    private static func parts(_ element: Substring) -> (name: String, value: Substring) {
        guard let sign = element.firstIndex(of: "=") else { return ("", "") }
        return (element[..<sign].lowercased(), element[element.index(after: sign)...])
    }

    private static func bytes(ofHexadecimal text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for digit in text.utf8 {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): value = digit - UInt8(ascii: "A") + 10
            default: return nil
            }
            if let first = high.take() { bytes.append(first << 4 | value) } else { high = value }
        }
        return high == nil ? bytes : nil
    }

    /// Decodes Base64 (RFC 4648 §4), with or without padding.
    private static func bytes(ofBase64 text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (bits, count) = (UInt32(0), 0)
        var isPadded = false
        for digit in text.utf8 {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0") + 52
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            case UInt8(ascii: "="):
                isPadded = true
                continue
            default: return nil
            }
            if isPadded { return nil }
            bits = (bits << 6 | UInt32(value)) & 0xFFFF
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }
}
