#if Proxy
/// The attributes of a tag, by RFC 8216 §4.2's grammar: commas and equals signs in quotes are text.
///
/// White space after a comma is passed over, as players do. What follows the first fault is not read.
struct HLSAttributeList {
    struct Attribute {
        let name: ArraySlice<UInt8>
        /// Without its quotes.
        let value: ArraySlice<UInt8>
        let isQuoted: Bool
    }

    private(set) var attributes: [Attribute] = []
    /// Whether all of it was read.
    private(set) var isWellFormed = true

    init(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while true {
            rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            if rest.isEmpty { return }
            guard let attribute = Self.attribute(&rest) else {
                isWellFormed = false
                return
            }
            attributes.append(attribute)
        }
    }

    /// Takes one attribute and the comma after it.
    private static func attribute(_ rest: inout ArraySlice<UInt8>) -> Attribute? {
        let name = rest.prefix { (0x41...0x5A).contains($0) || $0.isASCIIDigit || $0 == UInt8(ascii: "-") }
        rest = rest[name.endIndex...]
        guard !name.isEmpty, rest.first == UInt8(ascii: "=") else { return nil }
        rest = rest.dropFirst()
        let isQuoted = rest.first == UInt8(ascii: "\"")
        if isQuoted { rest = rest.dropFirst() }
        let end = rest.firstIndex(of: UInt8(ascii: isQuoted ? "\"" : ",")) ?? rest.endIndex
        let value = rest[..<end]
        rest = rest[end...]
        if isQuoted {
            guard !rest.isEmpty else { return nil }  // no closing quote
            rest = rest.dropFirst().drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard rest.isEmpty || rest.first == UInt8(ascii: ",") else { return nil }
        } else {
            guard !value.isEmpty, !value.contains(UInt8(ascii: "\"")) else { return nil }
        }
        rest = rest.dropFirst()
        return Attribute(name: name, value: value, isQuoted: isQuoted)
    }

    /// The first attribute of that name.
    func first(_ name: StaticString) -> Attribute? {
        attributes.first {
            $0.name.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        }
    }

    /// A quoted string; nil if there is none, it is not quoted, or not UTF-8.
    func string(_ name: StaticString) -> String? {
        first(name).flatMap { $0.isQuoted ? String(validating: $0.value, as: UTF8.self) : nil }
    }

    /// An enumerated string: one without quotes.
    func symbol(_ name: StaticString) -> String? {
        first(name).flatMap { $0.isQuoted ? nil : String(validating: $0.value, as: UTF8.self) }
    }

    /// A decimal integer.
    func integer(_ name: StaticString) -> Int64? {
        first(name).flatMap { $0.isQuoted ? nil : DecimalNumbers.integer($0.value) }
    }
}
#endif
