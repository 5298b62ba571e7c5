#if Proxy
import HTTPTypes

/// The field lines of one request's head, as they came: looked up where they lie, and made into strings only when somebody
/// wants one.
///
/// A player's request is mostly one `Range` that matters and ten fields that don't.
struct RequestFields: Sendable, Hashable {
    /// Where one line's parts stand in ``bytes``.
    struct Line: Sendable, Hashable {
        var name: Range<Int>
        var value: Range<Int>
    }

    private let bytes: [UInt8]
    private(set) var lines: [Line]

    /// Fields whose lines stand in `bytes`; names are tokens, values have no blanks at their ends.
    init(bytes: [UInt8], lines: [Line]) {
        self.bytes = bytes
        self.lines = lines
    }

    /// The first value of a field; `name` in lower case.
    subscript(name: StaticString) -> String? {
        for line in lines where isNamed(line, name) { return text(line.value) }
        return nil
    }

    /// All values of a field, a line each, in order; `name` in lower case.
    func values(_ name: StaticString) -> [String] {
        lines.filter { isNamed($0, name) }.map { text($0.value) }
    }

    /// How many lines a field has; `name` in lower case.
    func count(_ name: StaticString) -> Int {
        lines.reduce(0) { $0 + (isNamed($1, name) ? 1 : 0) }
    }

    /// Whether no line has one of these names, which are in lower case.
    func has(noneOf names: [StaticString]) -> Bool {
        for line in lines {
            let count = line.name.count
            for name in names where name.utf8CodeUnitCount == count && isNamed(line, name) { return false }
        }
        return true
    }

    /// All fields, to be sent on or evaluated.
    var all: HTTPFields {
        var fields = HTTPFields()
        for line in lines {
            // Each name was checked to be a token.
            guard let name = HTTPField.Name(text(line.name)) else { continue }
            fields.append(HTTPField(name: name, lenientValue: bytes[line.value]))
        }
        return fields
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func isNamed(_ line: Line, _ name: StaticString) -> Bool {
        guard line.name.count == name.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            for index in 0..<line.name.count {
                var byte = bytes[line.name.lowerBound + index]
                if byte >= 0x41 && byte <= 0x5A { byte |= 0x20 }
                if byte != name.utf8Start[index] { return false }
            }
            return true
        }
    }
}
#endif
