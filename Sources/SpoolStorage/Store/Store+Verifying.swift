import Foundation

extension Store {
    /// Checks every stored block against its seal, through the same objects that players read; repairing, also what the
    /// catalog says of all bytes together.
    ///
    /// - Parameters:
    ///   - repairing: Whether bad blocks are given up, to be fetched again. If not they stay recorded, and a read that
    ///     meets one finds out.
    ///   - progress: Called now and then with the blocks done and the blocks in all; from any thread.
    /// Where something else stands in a file's place, all of its blocks are bad; repaired, the resource is removed. A file
    /// that can't be opened this time is told of and passed over.
    ///
    /// - Throws: ``CacheError`` when the catalog can't be read.
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
                guard let lease = try await lease(CacheKey(hash: key)) else {
                    try await verifyRecord(of: CacheKey(hash: key), repairing, &result)
                    continue
                }
                defer { lease.end() }
                let end = result.blocks + lease.generation.storedBlockCount
                do {
                    try await verify(lease.generation, repairing, &result) { progress($0, max(total, $0)) }
                } catch let unopened as UnopenedFile {
                    let count = max(0, end - result.blocks)
                    guard unopened.cause.saysNoFile else {
                        result.unchecked += count
                        result.uncheckedCause = result.uncheckedCause ?? unopened.cause.message
                        continue
                    }
                    result.blocks += count
                    result.bad += count
                    guard repairing else { continue }
                    // Nothing could be kept in its place either, so all of the resource goes.
                    _ = try await remove(lease.generation.key)
                    result.dropped += count
                }
            }
        }
        guard repairing else { return result }
        try await flush()
        let (difference, rowDifference) = try await executor.run(in: .maintenance) {
            (try self.catalog.recountStoredBytes(), try self.catalog.recountRowBytes())
        }
        ledger.correct(by: difference)
        ledger.correctRows(by: rowDifference)
        return result
    }

    /// A record that somebody has changed who has not the cache's key counts as one bad block.
    private func verifyRecord(
        of key: CacheKey, _ isRepairing: Bool, _ result: inout VerificationReport
    ) async throws {
        let record = try await executor.run(in: .maintenance) { try self.catalog.resource(key: key.hash) }
        guard record?.isUnreadable == true else { return }
        result.blocks += 1
        result.bad += 1
        guard isRepairing else { return }
        _ = try await remove(key)
        result.dropped += 1
    }

    private func verify(
        _ generation: Generation, _ isRepairing: Bool, _ result: inout VerificationReport, _ progress: (Int) -> Void
    ) async throws {
        if isRepairing {
            try await executor.run(in: .maintenance) {
                // A file that was deleted while it is open is read on until it is closed, and then lost: rather now.
                guard try !self.directory.bytes.contains(generation.identifier.hex) else { return }
                generation.disk?.file.close()
            }
        }
        var index: Int64 = 0
        while true {
            let first = index
            // A few at a time: whoever needs the thread for a player gets it in between.
            let step = try await executor.run(in: .maintenance) { () -> CheckedPart? in
                try self.checkOpen()
                guard let disk = generation.disk, let row = generation.row.value else { return nil }
                let blocks = try self.catalog.blocks(of: row, in: first..<Int64.max, limit: 64)
                let found = disk.verify(blocks, repairing: isRepairing)
                if isRepairing { generation.noteInvalidated(found.bad.map(MediaFile.wholeBlocks)) }
                return CheckedPart(found: found, next: blocks.last.map { $0.index + 1 })
            }
            guard let step else { return }
            result.blocks += step.found.checked
            result.bad += step.found.bad.count
            if isRepairing { result.dropped += step.found.bad.count }
            if let cause = step.found.failure { throw UnopenedFile(cause: cause) }
            guard let next = step.next else { return }
            progress(result.blocks)
            index = next
        }
    }
}

/// A media file that could not be opened this time, so that the rest of its blocks is not checked.
private struct UnopenedFile: Error {
    var cause: CacheError
}

/// A few blocks that were checked, and where to go on.
private struct CheckedPart {
    var found: MediaFile.Findings
    var next: Int64?
}

extension Generation {
    /// How many blocks have landed on disk, wholly or in part.
    fileprivate var storedBlockCount: Int {
        disk?.landed.reduce(0) { $0 + Block.indices(touching: $1).count } ?? 0
    }
}

extension CacheError {
    /// Whether something stands in a file's place that is none: a link, a directory, a device, a pipe.
    var saysNoFile: Bool {
        posixCode.map { [.ELOOP, .EISDIR, .EINVAL, .ENXIO].contains($0) } ?? false
    }
}
