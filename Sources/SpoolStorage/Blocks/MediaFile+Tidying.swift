import ByteRanges
import Synchronization

extension MediaFile {
    /// Gives up blocks that are recorded and take no disk space: an unclean end came after they had been evicted, or before
    /// they had reached the disk, or the file is gone. Nobody has to read them to find out.
    ///
    /// - Returns: The blocks; the ledger has been told, the catalog has not.
    /// - Throws: ``CacheError`` if the disk refuses; then none is given up.
    func invalidateHoles() throws -> [Range<Int64>] {
        try writer.withLock { writer in
            guard let open = try file.opened() else {
                writer.tails = [:]
                return withMap { $0.invalidateAll() }.map(Self.wholeBlocks)
            }
            var solid = ByteRangeSet()
            var offset: Int64 = 0
            while offset < Block.offsetLimit, let data = try open.file.nextData(from: offset) {
                solid.insert(Self.wholeBlocks(data))
                offset = data.upperBound
            }
            for index in writer.tails.keys { solid.insert(Block.range(of: index)) }
            return withMap { map in
                let holes = map.landed.flatMap { solid.holes(in: $0) }
                for hole in holes { map.invalidate(hole) }
                return holes.map(Self.wholeBlocks)
            }
        }
    }

    /// Gives back the disk space of whole blocks that hold no landed bytes: what an unclean end left behind.
    ///
    /// - Throws: ``CacheError`` if the disk refuses.
    func freeUnclaimed() throws {
        try writer.withLock { _ in
            guard let open = try file.opened(), try open.file.setMark(.exclusive) else { return }
            defer { clearMark(of: open) }
            let size = try open.file.size()
            for run in withMap({ $0.emptyBlocks(below: size) }) { try open.file.punchHole(run) }
        }
    }
}
