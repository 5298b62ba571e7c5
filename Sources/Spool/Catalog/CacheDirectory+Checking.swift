import Foundation

/// Work on all that is stored, or on all of one resource; blocks.
extension CacheDirectory {
    /// Checks every recorded block against its seal; drops the bad ones if `repairing`.
    func verify(repairing: Bool, progress: (Int, Int) -> Void) throws -> Verification {
        var result = Verification()
        let records = try catalog.resources()
        let total = try records.reduce(0) { sum, record in
            try sum + (record.generation.map { try catalog.blocks(of: $0.id).count } ?? 0)
        }
        for record in records {
            guard let generation = record.generation else { continue }
            let blocks = try catalog.blocks(of: generation.id)
            let file = try openMedia(generation, key: record.key)
            // Opening drops what the file is too short for.
            let missing = blocks.count { !file.contains($0.range) }
            result.bad += missing
            if isWritable { result.dropped += missing }
            for start in stride(from: 0, to: blocks.count, by: 256) {
                let part = Array(blocks[start..<min(start + 256, blocks.count)])
                let bad = file.verify(part)
                result.bad += bad.count
                if repairing {
                    try catalog.dropBlocks(generation.id, indices: bad)
                    result.dropped += bad.count
                }
                result.blocks += part.count
                progress(result.blocks, total)
            }
        }
        return result
    }

    /// Writes a complete resource to `file`: beside it first, then renamed, so that it is whole or not there.
    func export(_ key: CacheKey, length: Int64, address: String, to file: URL) throws {
        guard let generation = try catalog.resource(key: key.hash)?.generation else {
            throw CacheError(.notStored, "nothing is kept of \(address)")
        }
        let media = try openMedia(generation, key: key.hash)
        let partial = file.path + ".partial"
        guard FileManager.default.createFile(atPath: partial, contents: nil),
            let handle = FileHandle(forWritingAtPath: partial)
        else { throw CacheError(.storage, "\(partial) can't be written") }
        do {
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            var offset: Int64 = 0
            while offset < length {
                let part = offset..<min(length, offset + Int64(buffer.count))
                try buffer.withUnsafeMutableBytes { try media.read(part, into: $0) }
                try handle.write(contentsOf: buffer.prefix(Int(part.upperBound - part.lowerBound)))
                offset = part.upperBound
            }
            try handle.close()
            _ = rename(partial, file.path)
        } catch let bad as BadBlocks {
            try? FileManager.default.removeItem(atPath: partial)
            try catalog.dropBlocks(generation.id, indices: bad.indices)
            throw CacheError(
                .incomplete, "\(address) is not complete: stored bytes \(bad.range) were damaged and dropped")
        } catch {
            try? FileManager.default.removeItem(atPath: partial)
            throw CacheError(.storage, "\(file.path) could not be written: \(error)", underlying: error)
        }
    }
}
