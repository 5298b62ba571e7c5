/// A scanner that returns the tags and texts of an XML document, as slices of its bytes (XML 1.0).
///
/// Unlike `XMLParser`, it reports positions, so that parts of a document can be replaced byte for byte. It does not
/// read external resources or expand entities. A document type declaration is rejected, because it could define
/// entities. Time is proportional to the length of the document. The scanner does not check whether a document is
/// well-formed.
package struct XMLScanner {
    /// A part of the document.
    package enum Token {
        /// A start tag, or the tag of an empty element.
        case start(XMLStartTag)
        /// The name of an end tag, including its prefix.
        case end(ArraySlice<UInt8>)
        /// Text between tags, with unexpanded entities.
        case text(ArraySlice<UInt8>)
        /// The text of a CDATA section.
        case characterData(ArraySlice<UInt8>)
    }

    private let bytes: ArraySlice<UInt8>
    /// The position at which the next token starts.
    package private(set) var position: Int

    /// Creates a scanner. A byte order mark is skipped.
    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.startIndex + 3 : bytes.startIndex
    }

    /// Returns the next token, or `nil` at the end of the document.
    ///
    /// - Throws: ``XMLError`` with case `documentType`, `tooLarge`, or `malformed` for an invalid tag, or for a tag,
    ///   comment or section without an end.
    package mutating func next() throws(XMLError) -> Token? {
        while position < bytes.endIndex {
            let rest = bytes[position...]
            guard rest.first == UInt8(ascii: "<") else {
                let end = rest.firstIndex(of: UInt8(ascii: "<")) ?? bytes.endIndex
                defer { position = end }
                return .text(bytes[position..<end])
            }
            if rest.starts(with: "<?".utf8) {
                _ = try skip(past: "?>", after: 2, "processing instruction")
            } else if rest.starts(with: "<!--".utf8) {
                _ = try skip(past: "-->", after: 4, "comment")
            } else if rest.starts(with: "<![CDATA[".utf8) {
                return .characterData(try skip(past: "]]>", after: 9, "CDATA section"))
            } else if rest.starts(with: "<!".utf8) {
                throw .documentType(at: position)
            } else if rest.starts(with: "</".utf8) {
                let name = try skip(past: ">", after: 2, "end tag")
                return .end(name.prefix { !Self.isSpace($0) })
            } else {
                return .start(try startTag())
            }
        }
        return nil
    }

    /// Returns whether a byte is white space in XML.
    package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    private static func endsName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ">"), UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: "<"): true
        default: isSpace(byte)
        }
    }

    /// Moves past the next `end`, and returns the bytes before it.
    private mutating func skip(
        past end: StaticString, after opening: Int, _ what: String
    ) throws(XMLError) -> ArraySlice<UInt8> {
        let ending = UnsafeBufferPointer(start: end.utf8Start, count: end.utf8CodeUnitCount)
        let start = position + opening
        var index = start
        while index + ending.count <= bytes.endIndex {
            if bytes[index] == ending[0], bytes[index..<index + ending.count].elementsEqual(ending) {
                position = index + ending.count
                return bytes[start..<index]
            }
            index += 1
        }
        throw .malformed("the \(what) at byte \(position) is not terminated")
    }

    private mutating func startTag() throws(XMLError) -> XMLStartTag {
        let start = position
        let isEnd = Self.endsName
        let name = bytes[(start + 1)...].prefix { !isEnd($0) }
        var tag = XMLStartTag(start: start, name: name)
        position = name.endIndex
        while true {
            position = bytes[position...].firstIndex { !Self.isSpace($0) } ?? bytes.endIndex
            guard position < bytes.endIndex, !name.isEmpty else { break }
            if bytes[position] == UInt8(ascii: ">") {
                position += 1
                return tag
            }
            if bytes[position] == UInt8(ascii: "/") {
                guard bytes[position...].starts(with: "/>".utf8) else { break }
                position += 2
                tag.isEmpty = true
                return tag
            }
            let attribute = bytes[position...].prefix { !isEnd($0) }
            let equals = bytes[attribute.endIndex...].firstIndex { !Self.isSpace($0) } ?? bytes.endIndex
            guard !attribute.isEmpty, equals < bytes.endIndex, bytes[equals] == UInt8(ascii: "=") else { break }
            let quote = bytes[(equals + 1)...].firstIndex { !Self.isSpace($0) } ?? bytes.endIndex
            guard quote < bytes.endIndex, bytes[quote] == UInt8(ascii: "\"") || bytes[quote] == UInt8(ascii: "'"),
                let end = bytes[(quote + 1)...].firstIndex(of: bytes[quote])
            else { break }
            guard tag.attributes.count < 256 else {
                throw .tooLarge("the tag at byte \(start) has more than 256 attributes")
            }
            tag.attributes.append((attribute, bytes[(quote + 1)..<end]))
            position = end + 1
        }
        throw .malformed("the tag at byte \(start) is not valid XML")
    }
}

/// A start tag.
package struct XMLStartTag {
    /// The position of the `<`.
    package let start: Int
    /// The name, including its prefix.
    package let name: ArraySlice<UInt8>
    /// The names of the attributes, and the values between their quotes, with unexpanded entities.
    package var attributes: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)] = []
    /// Whether the tag ends with `/>`.
    package var isEmpty = false

    init(start: Int, name: ArraySlice<UInt8>) {
        self.start = start
        self.name = name
    }

    /// Returns the value of an attribute with unexpanded entities, or `nil` if the tag does not contain it.
    package func value(_ name: String) -> ArraySlice<UInt8>? {
        attributes.first { $0.name.elementsEqual(name.utf8) }?.value
    }
}

extension ArraySlice<UInt8> {
    /// The name without its namespace prefix.
    package var localName: ArraySlice<UInt8> { lastIndex(of: UInt8(ascii: ":")).map { self[($0 + 1)...] } ?? self }
}

extension XMLScanner {
    /// The information about the root element in the first bytes of a document.
    package enum Root {
        /// The name of the root, without its prefix.
        case name(ArraySlice<UInt8>)
        /// The bytes start like XML, but end before the root element.
        case cut
        /// The bytes are not the start of an XML document, or the document contains a document type declaration.
        case none
    }

    /// Returns the name of the root element in the first bytes of a document.
    package static func rootName(_ prefix: ArraySlice<UInt8>) -> Root {
        var index = prefix.firstIndex { !isSpace($0) } ?? prefix.endIndex
        guard index < prefix.endIndex, prefix[index] == UInt8(ascii: "<") else { return .none }
        while true {
            let rest = prefix[index...]
            let ending: String
            if rest.starts(with: "<?".utf8) {
                ending = "?>"
            } else if rest.starts(with: "<!--".utf8) {
                ending = "-->"
            } else if rest.starts(with: "<!".utf8) {
                return .none
            } else {
                let name = rest.dropFirst().prefix {
                    !isSpace($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/")
                }
                return name.endIndex < prefix.endIndex ? .name(name.localName) : .cut
            }
            guard let end = rest.dropFirst(ending.utf8.count > 2 ? 4 : 2).firstRange(of: ending.utf8) else {
                return .cut
            }
            index = prefix[end.upperBound...].firstIndex { !isSpace($0) } ?? prefix.endIndex
            guard index < prefix.endIndex else { return .cut }
            guard prefix[index] == UInt8(ascii: "<") else { return .none }
        }
    }
}
