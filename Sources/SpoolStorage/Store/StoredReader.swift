import ByteRanges
package import Foundation

/// Reads what is kept of one resource beside the process that has the cache directory.
///
/// It changes nothing, and nobody knows of it: what it reads may be evicted, removed or replaced at any moment, since
/// leases don't reach other processes. So each block is checked against its recorded seal *after* it was read, in
/// memory; one that is not what was received is a miss. Bytes that were landed a moment ago may not be recorded yet.
package final class StoredReader: Sendable {
    /// What was recorded of the resource when this was opened.
    package let record: StoredResourceRecord

    private let generation: GenerationRecord
    private let catalog: Catalog
    private let file: any StoredFile
    private let sealer: BlockSealer

    /// Opens what the directory at `path` holds under the key; nil if that is nothing. Blocks.
    ///
    /// - Throws: ``CacheError``: `notStored` when there is no cache; `catalogTooNew`, `catalogDamaged`; `keyRequired`, `keyRefused`; `storage`, also
    ///   since others may write to the directory.
    package init?(
        path: String, key: CacheKey, encryptionKey: EncryptionKey? = nil,
        fileSystem: any FileSystem = SystemFileSystem()
    ) throws {
        catalog = try CacheDirectory.catalog(inspecting: path, key: encryptionKey, fileSystem: fileSystem)
        guard let found = try catalog.resource(key: key.hash), let generation = found.generation,
            case let secret = try catalog.secret(), secret.format.rawValue == generation.format
        else { return nil }
        try CacheDirectory.refuseForeign(path, fileSystem)
        record = try StoredResourceRecord(found, in: catalog)
        self.generation = generation
        self.sealer = secret.sealer(of: generation.identifier, key: key)
        let bytes = FileByteStore(folder: path + "/media", fileSystem: fileSystem)
        // Removed since it was looked up.
        guard let file = try bytes.open(generation.identifier.hex, isWritable: false) else { return nil }
        self.file = file
    }

    /// Up to `range.count` bytes from `range.lowerBound` on, proven; fewer where a block's landed bytes end. Blocks.
    ///
    /// - Throws: ``MissingBytes`` when the first of them are not there, or are not what was received; ``CacheError`` when
    ///   the catalog can't be read.
    package func read(_ range: Range<Int64>) throws -> Data {
        guard !range.isEmpty, Block.isAddressable(range) else { throw MissingBytes(range: range) }
        var data = Data()
        for block in try catalog.blocks(of: generation.id, in: Block.indices(touching: range), limit: 64) {
            let wanted = block.range.clamped(to: range)
            guard wanted.lowerBound == range.lowerBound + Int64(data.count), !wanted.isEmpty else { break }
            guard let bytes = try proven(block) else { break }
            let start = Int(wanted.lowerBound - block.range.lowerBound)
            data += bytes[start..<start + Int(wanted.upperBound - wanted.lowerBound)]
        }
        guard !data.isEmpty else { throw MissingBytes(range: range) }
        return data
    }

    /// A block's bytes as they are sealed; nil if the file holds something else by now.
    private func proven(_ block: BlockRecord) throws -> Data? {
        var bytes = Data(count: Int(block.length))
        return bytes.withUnsafeMutableBytes { buffer in
            // Bytes that can't be read are missed like those that are not there.
            let count = try? file.read(into: buffer, at: block.range.lowerBound)
            return count == buffer.count ? sealer.open(UnsafeRawBufferPointer(buffer), as: block) : nil
        }
    }

    /// Copies the complete resource into a file, as ``Store/export(_:to:)`` does. Blocks.
    ///
    /// - Throws: ``CacheError``: `incomplete`; `storage` when the file can't be written.
    package func export(to file: URL) throws {
        let length = try completeLength()
        let target = try ExportFile(replacing: file.path)
        do {
            var offset: Int64 = 0
            while offset < length {
                let bytes = try readComplete(offset..<min(length, offset + 1 << 20))
                try target.append(bytes)
                offset += Int64(bytes.count)
            }
            try target.finish()
        } catch {
            target.discard()
            throw error
        }
    }

    /// The length of a resource that is recorded as complete.
    ///
    /// - Throws: ``CacheError`` with code `incomplete`, which names the first missing bytes.
    package func completeLength() throws -> Int64 {
        guard let length = record.description?.length else { throw incomplete(nil) }
        if length > 0, let hole = record.landed.firstHole(in: 0..<length) { throw incomplete(hole) }
        return length
    }

    /// As ``read(_:)``, of a resource that should be complete. Blocks.
    ///
    /// - Throws: ``CacheError``: `incomplete` when the first of the bytes are not there, or are not what was received.
    package func readComplete(_ range: Range<Int64>) throws -> Data {
        do {
            return try read(range)
        } catch let missing as MissingBytes {
            throw incomplete(missing.range)
        }
    }

    private func incomplete(_ missing: Range<Int64>?) -> CacheError {
        let cause = missing.map { "it lacks \($0.inWords)" } ?? "its length is not known"
        return CacheError(.incomplete, "\(record.url) is not complete: \(cause)", key: record.key, range: missing)
    }
}
