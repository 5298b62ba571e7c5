#if Proxy
/// The variables of a playlist, `{$name}` (RFC 8216bis §4.3): those of `EXT-X-DEFINE` so far.
struct HLSVariables {
    /// What each name stands for.
    private(set) var values: [String: String] = [:]
    private let imported: [String: String]
    private let query: Substring?

    /// - Parameters:
    ///   - query: The playlist's own query, for `QUERYPARAM`.
    ///   - imported: The master playlist's variables, for `IMPORT`.
    init(query: Substring?, imported: [String: String]) {
        self.query = query
        self.imported = imported
    }

    /// Takes a tag's definition. A first definition stays, and one that gives no value defines nothing.
    mutating func define(_ attributes: HLSAttributeList) {
        let name: String?
        let value: String?
        if let parameter = attributes.string("QUERYPARAM") {
            name = parameter
            value = self.parameter(parameter)
        } else if let imports = attributes.string("IMPORT") {
            name = imports
            value = imported[imports]
        } else {
            name = attributes.string("NAME")
            value = attributes.string("VALUE")
        }
        if let name, let value, values[name] == nil { values[name] = value }
    }

    /// A query parameter's value, percent-decoded; nil if there is none or it is empty.
    private func parameter(_ name: String) -> String? {
        for item in query?.utf8.split(separator: UInt8(ascii: "&")) ?? [] {
            let equals = item.firstIndex(of: UInt8(ascii: "=")) ?? item.endIndex
            guard item[..<equals].elementsEqual(name.utf8), equals < item.endIndex else { continue }
            let text = Substring(item[item.index(after: equals)...])
            guard !text.isEmpty else { return nil }
            return text.replacing("+", with: " ").percentDecoded
        }
        return nil
    }

    /// Whether a text may refer to a variable.
    static func areReferred(in text: String) -> Bool { text.utf8.contains(UInt8(ascii: "{")) && text.contains("{$") }

    /// A text with its variables' values, which are not looked at for further ones; nil if one is not defined.
    ///
    /// - Parameter limit: The most bytes that the outcome may have.
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    func substituted(_ text: String, limit: Int) throws(ManifestError) -> String? {
        var output = ""
        var rest = text[...]
        while let start = rest.firstRange(of: "{$") {
            output += rest[..<start.lowerBound]
            let name = rest[start.upperBound...].prefix {
                $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0))
            }
            let after = rest[name.endIndex...]
            if name.isEmpty || after.first != "}" {
                output += "{$"
                rest = rest[start.upperBound...]
                continue
            }
            guard let value = values[String(name)] else { return nil }
            guard output.utf8.count + value.utf8.count <= limit else {
                throw ManifestError(.tooLarge, "the variables of a playlist stand for too many bytes in all")
            }
            output += value
            rest = after.dropFirst()
        }
        output += rest
        return output
    }
}

extension StringProtocol {
    /// The text with `%XX` as the bytes that they mean; what is no such triplet stays.
    var percentDecoded: String {
        let source = Array(utf8)
        var bytes: [UInt8] = []
        var index = 0
        while index < source.count {
            let digits = source[index...].dropFirst().prefix(2)
            if source[index] == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy(\.isHexDigit),
                let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(byte)
                index += 3
            } else {
                bytes.append(source[index])
                index += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
#endif
