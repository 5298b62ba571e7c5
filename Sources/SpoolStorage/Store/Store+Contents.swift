import ByteRanges
import Foundation

extension Store {
    /// What is kept, by URL; what is pending is written down first.
    ///
    /// - Throws: ``CacheError`` with code `storage` when the catalog can't be read or written.
    package func resources() async throws -> [StoredResourceRecord] {
        try checkOpen()
        return try await executor.run(in: .background) {
            if self.directory.access.isWritable { try self.writeChanges() }
            return try self.catalog.resources().map { try StoredResourceRecord($0, in: self.catalog) }
        }
    }

    /// What is kept of one resource; nil if nothing is.
    package func resource(_ key: CacheKey) async throws -> StoredResourceRecord? {
        try checkOpen()
        return try await executor.run(in: .background) {
            if self.directory.access.isWritable { try self.writeChanges() }
            return try self.catalog.resource(key: key.hash).map { try StoredResourceRecord($0, in: self.catalog) }
        }
    }

    /// Of what is kept, what was used last, the last one first; and how many resources are kept.
    package func recentResources(limit: Int) async throws -> (resources: [StoredResourceRecord], count: Int) {
        try checkOpen()
        return try await executor.run(in: .background) {
            if self.directory.access.isWritable { try self.writeChanges() }
            let (records, count) = try self.catalog.recentResources(limit: limit)
            return (try records.map { try StoredResourceRecord($0, in: self.catalog) }, count)
        }
    }

    /// The keys of a presentation's parts.
    package func parts(of presentation: CacheKey) async throws -> [CacheKey] {
        try checkOpen()
        return try await executor.run(in: .background) {
            if self.directory.access.isWritable { try self.writeChanges() }
            return try self.catalog.parts(of: presentation.hash).map { CacheKey(hash: $0) }
        }
    }

    /// What a cache directory holds, without opening it: also while another process has it open.
    ///
    /// - Parameter key: One resource only.
    /// - Throws: ``CacheError``: `notStored` when there is no cache in the directory, `catalogTooNew`,
    ///   `catalogDamaged`, `storage`; `keyRequired`, `keyRefused`.
    package static func inspect(
        path: String, key: CacheKey? = nil, encryptionKey: EncryptionKey? = nil
    ) async throws -> [StoredResourceRecord] {
        try await BlockingExecutor(threadLimit: 2).run {
            let catalog = try CacheDirectory.catalog(
                inspecting: path, key: encryptionKey, fileSystem: SystemFileSystem())
            let records = try key.map { try catalog.resource(key: $0.hash).map { [$0] } ?? [] } ?? catalog.resources()
            return try records.map { try StoredResourceRecord($0, in: catalog) }
        }
    }
}

extension StoredResourceRecord {
    init(_ record: ResourceRecord, in catalog: Catalog) throws {
        let generation = record.generation
        self.init(
            key: CacheKey(hash: record.key), url: record.url,
            description: generation.map {
                GenerationDescription(
                    length: $0.length, contentType: record.contentType, version: $0.version, fields: $0.fields)
            },
            landed: try generation.map { try $0.landed ?? catalog.landed(of: $0.id) } ?? ByteRangeSet(),
            isPinned: record.isPinned, createdAt: record.createdAt, lastUsedAt: record.lastUsedAt,
            presentation: record.presentation.map { CacheKey(hash: $0) })
    }
}
