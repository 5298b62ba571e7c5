/// A definition of a variable: `EXT-X-DEFINE` (RFC 8216bis §4.4.2.3).
enum HLSDefinition: Hashable, Sendable {
    case value(name: String, value: String)
    /// The variable has the value of a parameter in the playlist's own query.
    case queryParameter(String)
    /// The variable has the value that the master playlist defines.
    case imported(String)

    /// Reads a tag, or returns `nil` if it defines nothing.
    init?(_ attributes: HLSAttributeList) {
        if let name = attributes.string("QUERYPARAM") {
            self = .queryParameter(name)
        } else if let name = attributes.string("IMPORT") {
            self = .imported(name)
        } else if let name = attributes.string("NAME"), let value = attributes.string("VALUE") {
            self = .value(name: name, value: value)
        } else {
            return nil
        }
    }
}

/// The variables of a playlist, `{$name}` (RFC 8216bis §4.3), that are defined at one place in its text.
struct HLSVariables {
    /// The value of each variable.
    private(set) var values: [String: String] = [:]
    private let imported: [String: String]
    private let query: Substring?

    /// Creates an empty set of variables.
    ///
    /// - Parameters:
    ///   - query: The playlist's own query, for `QUERYPARAM`.
    ///   - imported: The variables of the master playlist, for `IMPORT`.
    init(query: Substring?, imported: [String: String]) {
        self.query = query
        self.imported = imported
    }

    /// Adds a definition. The first definition of a variable counts, and one without a value defines nothing.
    mutating func define(_ definition: HLSDefinition) {
        let (name, value): (String, String?) =
            switch definition {
            case .value(let name, let value): (name, value)
            case .queryParameter(let name): (name, values[name] == nil ? parameter(name) : nil)
            case .imported(let name): (name, imported[name])
            }
        if let value, values[name] == nil { values[name] = value }
    }

    /// Returns the percent-decoded value of a query parameter, or `nil` if it is missing or empty.
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

    /// Returns whether a text may refer to a variable.
    static func areReferred(in text: String) -> Bool { text.utf8.contains(UInt8(ascii: "{")) && text.contains("{$") }

    /// Returns a text with the values of its variables, or `nil` if one is not defined. Values are not searched for
    /// further variables.
    ///
    /// - Parameter limit: The maximum size of the result, in bytes.
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
                throw ManifestError(.tooLarge, "the values of a playlist's variables have too many bytes in all")
            }
            output += value
            rest = after.dropFirst()
        }
        output += rest
        return output
    }
}

extension StringProtocol {
    /// The text with each `%XX` replaced by its byte. Other percent signs stay.
    package var percentDecoded: String {
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
