#if Proxy
/// Replacements in a text, gathered from its beginning to its end; everything between them stays byte for byte.
struct TextSplices {
    private let source: [UInt8]
    private var output: [UInt8] = []
    private var position = 0
    private let limit: Int

    /// - Parameter limit: The most bytes that ``finished()`` may have.
    init(_ source: [UInt8], limit: Int) {
        self.source = source
        self.limit = limit
    }

    /// Puts `text` in the place of `range`, which may be empty and begins no earlier than the last one ended.
    ///
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    mutating func replace(_ range: Range<Int>, with text: some Sequence<UInt8>) throws(ManifestError) {
        output.append(contentsOf: source[position..<range.lowerBound])
        output.append(contentsOf: text)
        position = range.upperBound
        guard output.count <= limit else { throw Self.tooLarge(limit) }
    }

    /// The whole text.
    ///
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    consuming func finished() throws(ManifestError) -> [UInt8] {
        guard position > 0 || !output.isEmpty else { return source }
        output.append(contentsOf: source[position...])
        guard output.count <= limit else { throw Self.tooLarge(limit) }
        return output
    }

    private static func tooLarge(_ limit: Int) -> ManifestError {
        ManifestError(.tooLarge, "a manifest with its addresses rewritten would have more than \(limit) bytes")
    }
}
#endif
