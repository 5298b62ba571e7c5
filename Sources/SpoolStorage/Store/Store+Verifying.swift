import Foundation

extension Store {
    /// Checks every stored block against its seal, through the same objects that players read.
    ///
    /// - Parameters:
    ///   - repairing: Whether bad blocks are given up, to be fetched again. If not they stay recorded, and a read that
    ///     meets one finds out.
    ///   - progress: Called now and then with the blocks done and the blocks in all; from any thread.
    /// Where something else stands in a file's place, all of its blocks are bad; repaired, the resource is removed.
    ///
    /// - Throws: ``CacheError`` when the catalog or a file can't be opened this time.
    package func verify(
        repairing: Bool, progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
    ) async throws -> VerificationReport {
        if repairing { try checkWritable() }
        try checkOpen()
        let total = try await executor.run(in: .maintenance) {
            if self.directory.access.isWritable { try self.writeChanges() }
            return try self.catalog.blockCount()
        }
        var result = VerificationReport()
        var key = ""
        while true {
            let last = key
            let keys = try await executor.run(in: .maintenance) { try self.catalog.keys(after: last, limit: 64) }
            guard let next = keys.last else { break }
            key = next
            for key in keys {
                guard let lease = try await lease(CacheKey(hash: key)) else { continue }
                defer { lease.end() }
                do {
                    try await verify(lease.generation, repairing, &result) { progress($0, max(total, $0)) }
                } catch let error as CacheError where error.saysNoFile {
                    let count = lease.generation.storedBlockCount
                    result.blocks += count
                    result.bad += count
                    guard repairing else { continue }
                    // Nothing could be kept in its place either, so all of the resource goes.
                    _ = try await remove(lease.generation.key)
                    result.dropped += count
                }
            }
        }
        if repairing { try await flush() }
        return result
    }

    private func verify(
        _ generation: Generation, _ isRepairing: Bool, _ result: inout VerificationReport, _ progress: (Int) -> Void
    ) async throws {
        if isRepairing {
            try await executor.run(in: .maintenance) {
                // A file that was deleted while it is open is read on until it is closed, and then lost: rather now.
                guard try self.directory.fileSystem.attributes(self.directory.mediaPath(generation.identifier)) == nil
                else { return }
                generation.disk?.file.close()
            }
        }
        var index: Int64 = 0
        while true {
            let first = index
            // A few at a time: whoever needs the thread for a player gets it in between.
            let step = try await executor.run(in: .maintenance) { () -> (count: Int, bad: Int, next: Int64?) in
                try self.checkOpen()
                guard let disk = generation.disk, let row = generation.row.value else { return (0, 0, nil) }
                let blocks = try self.catalog.blocks(of: row, in: first..<Int64.max, limit: 64)
                let found = disk.verify(blocks, repairing: isRepairing)
                if isRepairing { generation.noteInvalidated(found.bad.map(MediaFile.wholeBlocks)) }
                if let failure = found.failure { throw failure }
                return (blocks.count, found.bad.count, blocks.last.map { $0.index + 1 })
            }
            result.blocks += step.count
            result.bad += step.bad
            if isRepairing { result.dropped += step.bad }
            guard let next = step.next else { return }
            progress(result.blocks)
            index = next
        }
    }
}

extension Generation {
    /// How many blocks have landed on disk, wholly or in part.
    fileprivate var storedBlockCount: Int {
        disk?.landed.reduce(0) { $0 + Block.indices(touching: $1).count } ?? 0
    }
}

extension CacheError {
    /// Whether something stands in a file's place that is none: a link, a directory, a device, a pipe.
    fileprivate var saysNoFile: Bool {
        posixCode.map { [.ELOOP, .EISDIR, .EINVAL, .ENXIO].contains($0) } ?? false
    }
}
