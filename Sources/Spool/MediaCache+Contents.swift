public import ByteRanges
public import Foundation
import HTTPRanges
import Synchronization

/// What a cache holds of one media file.
public struct CachedMedia: Sendable, Hashable {
    /// Its name in the cache.
    public var key: CacheKey
    /// Scheme, host and path; no query values.
    public var address: String
    /// Number of bytes of the whole; nil if no response has told it.
    public var length: Int64?
    /// The origin's `Content-Type`.
    public var contentType: String?
    /// What tells this version from others: the entity tag, else `Last-Modified`; nil if the origin sent neither.
    public var validator: String?
    /// Which bytes are kept.
    public var ranges: ByteRangeSet
    /// Whether it is kept from eviction.
    public var isPinned: Bool
    /// When a reader last opened it.
    public var lastUsed: Date

    /// Number of bytes kept.
    public var cachedBytes: Int64 { ranges.byteCount }
    /// Whether every byte is there.
    public var isComplete: Bool { length.map { ranges.contains(0..<$0) } ?? false }
}

/// What a check of all blocks found.
public struct Verification: Sendable, Hashable {
    /// Blocks looked at.
    public var blocks = 0
    /// Blocks that did not match their seals.
    public var bad = 0
    /// Bad blocks that were dropped, to be fetched again when asked for.
    public var dropped = 0
}

extension MediaCache {
    /// What is kept, by address.
    ///
    /// - Throws: `CacheError` with code `.storage` when the catalog can't be read.
    public func contents() async throws -> [CachedMedia] {
        try await services.executor.run {
            self.services.flusher.write()
            return try self.services.catalog.resources().map { try CachedMedia($0, in: self.services.catalog) }
        }
    }

    /// What is kept of one resource; nil if nothing is.
    public func contents(of key: CacheKey) async throws -> CachedMedia? {
        try await services.executor.run {
            self.services.flusher.write()
            return try self.services.catalog.resource(key: key.hash).map {
                try CachedMedia($0, in: self.services.catalog)
            }
        }
    }

    /// What a cache directory holds, without opening it: also while another process has it open.
    ///
    /// - Parameter key: One resource only.
    /// - Throws: `CacheError`: `.notStored` when there is no cache in the directory, `.catalogTooNew`,
    ///   `.catalogDamaged`, `.storage`.
    public static func inspect(_ directory: URL, key: CacheKey? = nil) async throws -> [CachedMedia] {
        try await BlockingExecutor(threadLimit: 1).run {
            let catalog = try CacheDirectory(inspecting: directory.path).catalog
            let records = try key.map { try catalog.resource(key: $0.hash).map { [$0] } ?? [] } ?? catalog.resources()
            return try records.map { try CachedMedia($0, in: catalog) }
        }
    }

    /// Keeps a stored resource from eviction, or lets it go again.
    ///
    /// - Throws: `CacheError` with code `.notStored` when nothing of it is kept.
    public func setPinned(_ isPinned: Bool, key: CacheKey) async throws {
        let isKnown = try await services.executor.run {
            self.services.flusher.settle(key)
            return try self.services.catalog.setPinned(isPinned, key: key.hash)
        }
        guard isKnown else { throw CacheError(.notStored, "nothing is kept under the key \(key)") }
    }

    /// Removes what is kept of a resource, pinned or not. A reader that is in it finishes from its open file or ends
    /// with `.resourceChanged`; one that opens later starts anew.
    ///
    /// - Returns: Whether anything was kept.
    @discardableResult
    public func remove(_ key: CacheKey) async throws -> Bool {
        try await services.executor.run {
            guard let open = self.resources.scheduler(of: key) else { return try self.removeStored(key, from: nil) }
            // A response that begins a generation is taken in before this or after it.
            return try open.evaluating.withLock { _ in try self.removeStored(key, from: open) }
        }
    }

    private func removeStored(_ key: CacheKey, from open: Scheduler?) throws -> Bool {
        services.flusher.write()
        let record = try services.catalog.resource(key: key.hash)
        if let open, open.generation != nil {
            open.detachGeneration()
        } else if let stored = record?.generation?.storedBytes {
            services.capacity.release(stored)
        }
        services.remove(key: key)
        return record != nil
    }

    /// Removes everything.
    public func removeAll() async throws {
        for media in try await contents() { try await remove(media.key) }
    }

    /// Evicts by policy until at most `size` bytes are kept; nil: until the capacity holds.
    ///
    /// - Returns: How many bytes went. Pinned resources and what readers are near stay.
    @discardableResult
    public func evict(to size: Int64? = nil) async throws -> Int64 {
        let before = storedBytes
        guard let size = size ?? capacity else { return 0 }
        let evictor = services.evictor
        await Task(executorPreference: services.executor) { await evictor.shrink(to: size) }.value
        return before - storedBytes
    }

    /// Sets the most bytes of media to keep, for this directory from now on, and evicts what is too much.
    public func setCapacity(_ bytes: Int64?) async throws {
        if let bytes, bytes < 0 { throw CacheError(.invalidArgument, "a capacity of \(bytes) bytes is not possible") }
        services.capacity.limit = bytes
        try await services.executor.run { try self.services.catalog.setCapacity(bytes) }
        try await evict()
    }

    /// Checks every stored block against its seal.
    ///
    /// - Parameters:
    ///   - repairing: Whether bad blocks are dropped.
    ///   - progress: Called now and then with the blocks done and the blocks in all; from any thread.
    public func verify(
        repairing: Bool, progress: @escaping @Sendable (Int, Int) -> Void = { _, _ in }
    ) async throws -> Verification {
        try await services.executor.run {
            self.services.flusher.write()
            return try self.services.directory.verify(repairing: repairing, progress: progress)
        }
    }

    /// Copies a complete resource into a file; every byte is checked against its seal on the way.
    ///
    /// - Throws: `CacheError`: `.notStored`, `.incomplete` (the message names the first missing range), `.storage`.
    public func export(_ key: CacheKey, to file: URL) async throws {
        guard let media = try await contents(of: key) else {
            throw CacheError(.notStored, "nothing is kept under the key \(key)")
        }
        guard let length = media.length, media.isComplete else {
            let hole = media.ranges.firstHole(in: 0..<(media.length ?? .max))
            let missing =
                hole.map { media.length == nil ? "from byte \($0.lowerBound) on" : "bytes \($0)" } ?? "its length"
            throw CacheError(.incomplete, "\(media.address) is not complete: it lacks \(missing)")
        }
        let services = services
        try await services.executor.run {
            try services.directory.export(key, length: length, address: media.address, to: file)
        }
    }
}

extension CachedMedia {
    init(_ record: ResourceRecord, in catalog: Catalog) throws {
        var ranges = ByteRangeSet()
        var version: ResourceVersion?
        if let generation = record.generation {
            for block in try catalog.blocks(of: generation.id) { ranges.insert(block.range) }
            version = try? JSONDecoder().decode(ResourceVersion.self, from: Data(generation.version.utf8))
        }
        self.init(
            key: CacheKey(hash: record.key), address: record.url, length: record.generation?.length,
            contentType: record.contentType,
            validator: version?.validator.entityTag?.text ?? version?.validator.lastModified, ranges: ranges,
            isPinned: record.isPinned, lastUsed: record.lastUsedAt)
    }
}
