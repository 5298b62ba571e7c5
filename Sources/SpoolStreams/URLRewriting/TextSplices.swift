import ByteRanges

/// Replacements and removals of ranges in a manifest, from its start to its end. All other bytes stay unchanged.
struct TextSplices {
    private let source: [UInt8]
    private var output: [UInt8] = []
    private var position = 0
    /// The ranges that have not been removed yet, in order.
    private var removals: ArraySlice<Range<Int>>
    private let limit: Int

    /// Creates splices that remove ranges, without replacements.
    ///
    /// - Parameters:
    ///   - removed: The ranges to remove.
    ///   - limit: The maximum size of the result, in bytes.
    init(_ source: [UInt8], removing removed: ByteRangeSet = [], limit: Int) {
        self.source = source
        self.limit = limit
        removals = removed.map { Int($0.lowerBound)..<Int($0.upperBound) }[...]
    }

    /// Replaces `range`, which may be empty, and must not start before the end of the previously replaced range. A
    /// range within a removed one is not replaced.
    ///
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    mutating func replace(_ range: Range<Int>, with text: some Sequence<UInt8>) throws(ManifestError) {
        remove(until: range.lowerBound)
        guard range.lowerBound >= position else { return }
        output.append(contentsOf: source[position..<range.lowerBound])
        output.append(contentsOf: text)
        position = range.upperBound
        guard output.count <= limit else { throw Self.tooLarge(limit) }
    }

    /// Returns the resulting text.
    ///
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    consuming func finished() throws(ManifestError) -> [UInt8] {
        remove(until: source.count)
        guard position > 0 || !output.isEmpty else { return source }
        output.append(contentsOf: source[position...])
        guard output.count <= limit else { throw Self.tooLarge(limit) }
        return output
    }

    /// Removes the ranges that start at or before `end`.
    private mutating func remove(until end: Int) {
        while let range = removals.first, range.lowerBound <= end {
            removals.removeFirst()
            output.append(contentsOf: source[position..<range.lowerBound])
            position = range.upperBound
        }
    }

    private static func tooLarge(_ limit: Int) -> ManifestError {
        ManifestError(.tooLarge, "the manifest with rewritten URLs would exceed the limit of \(limit) bytes")
    }
}

extension ByteRangeSet {
    /// Returns the union of the set and the given ranges.
    func adding(_ ranges: [Range<Int>]) -> ByteRangeSet {
        var all = self
        for range in ranges { all.insert(Int64(range.lowerBound)..<Int64(range.upperBound)) }
        return all
    }
}
