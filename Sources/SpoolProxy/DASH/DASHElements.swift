#if Proxy
import XMLTokens

/// The elements of an MPD that are open at a place in it, each with what its references are relative to, and with what a walk
/// notes of it.
struct DASHElements<Note> {
    struct Element {
        /// Without the prefix of DASH's elements; empty for one of another namespace.
        let name: String
        /// Where its tag begins.
        let start: Int
        /// What references in it are relative to: the first of its `BaseURL`s; nil where that can't be asked for.
        fileprivate(set) var base: ReferenceRewriter?
        var note: Note
        fileprivate var hasBase = false
        fileprivate var text: ArraySlice<UInt8>?
        fileprivate var isCharacterData = false
    }

    private let prefix: ArraySlice<UInt8>
    /// From what is around the root, inwards.
    var open: [Element]
    /// How many `BaseURL`s have been looked at.
    private(set) var baseCount = 0

    init(prefix: ArraySlice<UInt8>, base: ReferenceRewriter, _ note: Note) {
        self.prefix = prefix
        open = [Element(name: "", start: 0, base: base, note: note)]
    }

    /// The element in which the next one begins.
    var last: Element {
        get { open[open.count - 1] }
        set { open[open.count - 1] = newValue }
    }

    /// The element that a tag begins; it is none of these before it is pushed.
    func element(_ tag: XMLStartTag, _ note: Note) -> Element {
        let local = tag.name.localName
        let isKnown = local.count <= 32 && tag.name[..<local.startIndex].elementsEqual(prefix)
        return Element(
            name: isKnown ? String(decoding: local, as: UTF8.self) : "", start: tag.start, base: last.base, note: note)
    }

    mutating func push(_ element: Element) { open.append(element) }

    /// Text in the last element.
    mutating func add(_ text: ArraySlice<UInt8>, isCharacterData: Bool) {
        let trimmed = XMLText.trimmed(text)
        guard !trimmed.isEmpty else { return }
        last.text = trimmed
        last.isCharacterData = isCharacterData
    }

    /// Ends the last element; a `BaseURL` holds for the one around it from here on.
    mutating func pop() -> Element? {
        guard open.count > 1, let element = open.popLast() else { return nil }
        guard element.name == "BaseURL", !last.hasBase, let text = element.text else { return element }
        let reference = element.isCharacterData ? String(validating: text, as: UTF8.self) : XMLText.unescaped(text)
        last.hasBase = true
        baseCount += 1
        last.base = reference.flatMap { last.base?.relative(to: $0) }
        return element
    }
}

extension XMLStartTag {
    /// An attribute's value, its entities replaced; nil where it is missing, or can't be read.
    func text(_ attribute: String) -> String? {
        value(attribute).flatMap { XMLText.unescaped(XMLText.trimmed($0)) }
    }
}
#endif
