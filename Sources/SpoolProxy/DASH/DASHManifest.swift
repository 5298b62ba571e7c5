#if Proxy
import XMLTokens

/// What an MPD says of itself as a whole (ISO/IEC 23009-1 §5.3.1).
package struct DASHManifest: Hashable, Sendable {
    /// The most bytes that an MPD may have.
    package static let maximumBytes = 8 << 20
    /// How deep elements may lie in one another.
    package static let maximumDepth = 64

    /// Whether it is live: of the type `dynamic`.
    package let isDynamic: Bool
    /// After how many seconds a player asks again.
    package let minimumUpdatePeriod: Double?

    /// The prefix of the root's name with its colon, or nothing: that of all elements of DASH.
    let prefix: ArraySlice<UInt8>
    /// Whether the root has a `BaseURL` that is not empty.
    let hasBaseURL: Bool
    /// Where the first of the root's children is that may stand behind a `BaseURL`.
    let firstChild: Int?

    /// Live ones are not kept at all.
    package var lifetime: ManifestLifetime { isDynamic ? .none : .unchanging }

    /// Reads a whole document; of what is in it only as much as the properties here need.
    ///
    /// - Parameter bytes: The body, decoded of any content coding. Time is proportional to its length.
    /// - Throws: ``ManifestError``: `tooLarge`, `refused` for a document type, `malformed` if it is not XML, its root is not
    ///   `MPD` or its tags don't match.
    package init(parsing bytes: [UInt8]) throws(ManifestError) {
        guard bytes.count <= Self.maximumBytes else {
            throw ManifestError(.tooLarge, "an MPD of \(bytes.count) bytes is larger than \(Self.maximumBytes)")
        }
        var scanner = XMLScanner(bytes[...])
        var open: [ArraySlice<UInt8>] = []
        var root: XMLStartTag?
        var hasBaseURL = false
        var firstChild: Int?
        while let token = try scanner.nextOfManifest() {
            switch token {
            case .start(let tag):
                if open.isEmpty {
                    guard root == nil, tag.name.localName.elementsEqual("MPD".utf8) else {
                        throw ManifestError(.malformed, "the root of an XML document is not one MPD")
                    }
                    root = tag
                } else if open.count == 1, firstChild == nil {
                    let local = tag.name.localName
                    if !local.elementsEqual("ProgramInformation".utf8) { firstChild = tag.start }
                }
                if !tag.isEmpty {
                    open.append(tag.name)
                    guard open.count <= Self.maximumDepth else {
                        throw ManifestError(.tooLarge, "an MPD's elements lie more than \(Self.maximumDepth) deep")
                    }
                }
            case .end(let name):
                guard let last = open.popLast(), last.elementsEqual(name) else {
                    throw ManifestError(.malformed, "an MPD's end tag at byte \(name.startIndex) matches no start tag")
                }
            case .text(let text), .characterData(let text):
                let isSpace = text.allSatisfy(XMLScanner.isSpace)
                guard isSpace || !open.isEmpty else {
                    throw ManifestError(.malformed, "an MPD has text outside of its root, at byte \(text.startIndex)")
                }
                if open.count == 2, !isSpace, open[1].localName.elementsEqual("BaseURL".utf8) { hasBaseURL = true }
            }
        }
        guard let root, open.isEmpty else { throw ManifestError(.malformed, "an MPD ends before its root does") }
        isDynamic = root.value("type").map { $0.elementsEqual("dynamic".utf8) } ?? false
        minimumUpdatePeriod = root.value("minimumUpdatePeriod").flatMap { Self.seconds($0) }
        prefix = root.name[..<root.name.localName.startIndex]
        self.hasBaseURL = hasBaseURL
        self.firstChild = firstChild
    }

    /// Seconds of an `xs:duration` without years and months, `P1DT2H3M4.5S`; nil for anything else.
    static func seconds(_ bytes: ArraySlice<UInt8>) -> Double? {
        var rest = bytes
        guard rest.popFirst() == UInt8(ascii: "P"), bytes.count <= 64 else { return nil }
        var units: [(letter: UInt8, seconds: Double)] = [(UInt8(ascii: "D"), 86400)]
        var total = 0.0
        while let first = rest.first {
            if first == UInt8(ascii: "T") {
                units = [(UInt8(ascii: "H"), 3600), (UInt8(ascii: "M"), 60), (UInt8(ascii: "S"), 1)]
                rest = rest.dropFirst()
                continue
            }
            let digits = rest.prefix { $0.isASCIIDigit || $0 == UInt8(ascii: ".") }
            rest = rest[digits.endIndex...]
            guard let number = DecimalNumbers.seconds(digits), let letter = rest.popFirst(),
                let unit = units.firstIndex(where: { $0.letter == letter })
            else { return nil }
            total += number * units[unit].seconds
            units.removeSubrange(...unit)
        }
        return total <= 1e9 ? total : nil
    }
}

extension XMLScanner {
    /// As ``next()``, in the words of manifests.
    mutating func nextOfManifest() throws(ManifestError) -> Token? {
        do {
            return try next()
        } catch {
            let code: ManifestError.Code =
                switch error {
                case .documentType: .refused
                case .malformed: .malformed
                case .tooLarge: .tooLarge
                }
            throw ManifestError(code, "an MPD can't be read: \(error)")
        }
    }
}
#endif
