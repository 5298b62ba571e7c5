/// A definition of a variable: `EXT-X-DEFINE` (RFC 8216bis §4.4.2.3).
enum HLSDefinition: Hashable, Sendable {
    case value(name: String, value: String)
    /// A variable with the value of a parameter in the playlist's own query.
    case queryParameter(String)
    /// A variable with the value that the master playlist defines.
    case imported(String)

    /// Reads a tag, or returns `nil` if it is not a valid definition.
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

/// The variables (`{$name}`, RFC 8216bis §4.3) that are defined at one position in the text of a playlist.
struct HLSVariables {
    /// The value of each variable.
    private(set) var values: [String: String] = [:]
    /// The variables whose values are parameters of the playlist's own query.
    private(set) var ofQuery: Set<String> = []
    private let imported: [String: String]
    /// The parameters of the playlist's own query, percent-encoded. If a name occurs several times, the first value is
    /// used.
    private let parameters: [String: Substring]

    /// Creates an empty set of variables.
    ///
    /// - Parameters:
    ///   - query: The playlist's own query, for `QUERYPARAM`.
    ///   - imported: The variables of the master playlist, for `IMPORT`.
    init(query: Substring?, imported: [String: String]) {
        // The query is parsed once. Otherwise, each of many definitions would search a long query.
        let items = (query ?? "").utf8.split(separator: UInt8(ascii: "&")).compactMap { item -> (String, Substring)? in
            guard let equals = item.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            return (String(Substring(item[..<equals])), Substring(item[item.index(after: equals)...]))
        }
        parameters = Dictionary(items) { first, _ in first }
        self.imported = imported
    }

    /// Adds a definition. Later definitions of the same variable, and definitions without a value, are ignored.
    mutating func define(_ definition: HLSDefinition) {
        let (name, value): (String, String?) =
            switch definition {
            case .value(let name, let value): (name, value)
            case .queryParameter(let name): (name, values[name] == nil ? parameter(name) : nil)
            case .imported(let name): (name, imported[name])
            }
        guard let value, values[name] == nil else { return }
        values[name] = value
        if case .queryParameter = definition { ofQuery.insert(name) }
    }

    /// Returns the percent-decoded value of a query parameter, or `nil` if it is missing or empty.
    private func parameter(_ name: String) -> String? {
        guard let text = parameters[name], !text.isEmpty else { return nil }
        return text.replacing("+", with: " ").percentDecoded
    }

    /// Returns whether a string may refer to a variable.
    static func mayOccur(in text: String) -> Bool { text.utf8.contains(UInt8(ascii: "{")) && text.contains("{$") }

    /// Returns a string with its variables replaced by their values, or `nil` if a variable is not defined. Variables
    /// within values are not replaced.
    ///
    /// - Parameter limit: The maximum size of the result, in bytes.
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    func substituted(_ text: String, limit: Int) throws(ManifestError) -> String? {
        // The result is built only if it is within the limit.
        var count = 0
        let isDefined = forEachPiece(of: text) { piece in
            count += piece.count
            return true
        }
        guard isDefined else { return nil }
        guard count <= limit else {
            throw ManifestError(
                .tooLarge, "the values of the playlist's variables exceed the remaining limit of \(limit) bytes")
        }
        var output = ""
        output.reserveCapacity(count)
        _ = forEachPiece(of: text) { piece in
            output += Substring(piece)
            return true
        }
        return output
    }

    /// Returns whether ``substituted(_:limit:)`` would return `result`, without building the text.
    func areEqual(substituting text: String, to result: String) -> Bool {
        var rest = result.utf8[...]
        let isPrefix = forEachPiece(of: text) { piece in
            guard rest.starts(with: piece) else { return false }
            rest = rest.dropFirst(piece.count)
            return true
        }
        return isPrefix && rest.isEmpty
    }

    /// Calls `body` with the literal parts of a string and the values of its variables, in order, until it returns
    /// `false`.
    ///
    /// - Returns: `false` if `body` returns `false` or if a variable is not defined.
    private func forEachPiece(of text: String, _ body: (Substring.UTF8View) -> Bool) -> Bool {
        let bytes = text.utf8
        // The start of the current literal part, and the position at which the search for the next variable starts.
        var (literal, place) = (bytes.startIndex, bytes.startIndex)
        while let brace = bytes[place...].firstIndex(of: UInt8(ascii: "{")) {
            place = bytes.index(after: brace)
            guard place < bytes.endIndex, bytes[place] == UInt8(ascii: "$") else { continue }
            let name = bytes[bytes.index(after: place)...].prefix { Self.isNameByte($0) }
            guard !name.isEmpty, name.endIndex < bytes.endIndex, bytes[name.endIndex] == UInt8(ascii: "}") else {
                continue
            }
            guard let value = values[String(Substring(name))], body(bytes[literal..<brace]), body(value.utf8[...])
            else { return false }
            literal = bytes.index(after: name.endIndex)
            place = literal
        }
        return body(bytes[literal...])
    }

    /// Returns whether a byte may be part of a variable's name: `a` to `z`, `A` to `Z`, `0` to `9`, `-` and `_`.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension StringProtocol {
    /// The text with each `%XX` replaced by its byte. Other percent signs stay unchanged.
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
