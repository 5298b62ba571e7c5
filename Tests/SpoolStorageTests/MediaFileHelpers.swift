import ByteRanges

@testable import SpoolStorage

// Shorthand functions for tests of media files.

extension MediaFile {
    /// Creates a media file whose file stays open, with the block records of a previous process.
    convenience init(file: any StoredFile, sealer: BlockSealer?, blocks: [BlockRecord] = [], length: Int64? = nil) {
        var storedRanges = ByteRangeSet()
        for block in blocks where block.isPlausible { storedRanges.insert(block.range) }
        self.init(
            file: PooledFile(file), sealer: sealer, storedRanges: storedRanges, length: length,
            storedSeals: { indices in blocks.filter { indices.contains($0.index) } })
    }

    /// Returns the records that are not in the catalog yet.
    func takeSeals(partial: Bool) -> [BlockRecord] {
        if partial { sealTails() }
        return takeChanges()?.sealed ?? []
    }

    /// Returns the offset at which a transfer for the byte at `offset` starts: the end of the stored part of its block.
    func storingOffset(for offset: Int64) -> Int64 {
        let start = Block.roundDown(offset)
        return min(start + Block.size, prefix(at: start)?.upperBound ?? start)
    }

    /// Returns the first maximal missing range in `window`.
    func firstMissingRange(in window: Range<Int64>) -> Range<Int64>? { storedRanges.firstMissingRange(in: window) }

    /// Checks and repairs blocks, and returns the indices of damaged blocks.
    func repair(_ records: [BlockRecord]) -> [Int64] {
        verify(records, repairing: true).bad.map { Block.index(of: $0.lowerBound) }
    }
}

extension BlockReclaimer.Evicted {
    /// The indices of the evicted blocks.
    var indices: [Int64] { ranges.flatMap { Block.indices(touching: $0) } }
}

extension Generation {
    /// Returns the offset at which a transfer for the byte at `offset` starts: the end of the stored part of its block.
    func storingOffset(for offset: Int64) -> Int64 {
        let start = Block.roundDown(offset)
        return min(start + Block.size, storedPrefix(at: start)?.upperBound ?? start)
    }
}

extension MissingBytes: Equatable {
    /// Creates an error from block indices.
    init(indices: [Int64], range: Range<Int64>) {
        self.init(invalidated: indices.map(Block.range), range: range)
    }

    /// The indices of the damaged blocks.
    var indices: [Int64] { invalidated.flatMap { Block.indices(touching: $0) } }

    static func == (left: MissingBytes, right: MissingBytes) -> Bool {
        left.indices == right.indices && left.range == right.range
    }
}
