import Foundation
import Logging
import Synchronization

/// Makes room before bytes are accepted: closed resources by policy first, then what readers have left behind.
///
/// One request at a time. It is called from transfers, on the blocking executor, and blocks there.
actor Evictor {
    private let catalog: Catalog
    private let directory: CacheDirectory
    private let capacity: Capacity
    private let policy: any EvictionPolicy
    private let resources: OpenResources
    private let flusher: Flusher
    private let events: EventHub
    /// Held while what is stored of a resource is opened, or evicted because nobody has it open. Both block.
    nonisolated let turns = Mutex(())

    init(
        directory: CacheDirectory, capacity: Capacity, policy: any EvictionPolicy, resources: OpenResources,
        flusher: Flusher, events: EventHub
    ) {
        self.catalog = directory.catalog
        self.directory = directory
        self.capacity = capacity
        self.policy = policy
        self.resources = resources
        self.flusher = flusher
        self.events = events
    }

    /// Takes `count` bytes of the capacity, evicting what is needed.
    ///
    /// - Returns: False if they do not fit although all that may go has gone.
    func reserve(_ count: Int64) -> Bool {
        // A little more than asked for, so that not every chunk of a long fill comes here.
        let batch = max(count, min(8 << 20, (capacity.limit ?? 0) / 16))
        while !capacity.reserve(count) {
            guard free(batch) > 0 else { return false }
        }
        return true
    }

    /// Evicts until at most `size` bytes are kept, as far as pins and readers allow.
    func shrink(to size: Int64) {
        while capacity.used > size {
            guard free(capacity.used - size) > 0 else { return }
        }
    }

    private func free(_ count: Int64) -> Int64 {
        var freed = freeClosed(count)
        if freed < count { freed += freeOpen(count - freed) }
        return freed
    }

    /// Evicts resources that nobody has open, page by page from the least recently used.
    private func freeClosed(_ count: Int64) -> Int64 {
        // What resources that have just been closed have landed counts as theirs.
        flusher.write()
        let open = Set(resources.keys.map(\.hash))
        var freed: Int64 = 0
        var position: EvictionPosition?
        while freed < count {
            guard let page = try? catalog.leastRecentlyUsed(limit: 64, after: position), !page.isEmpty else { break }
            position = page.last?.position
            let closed = page.filter { !open.contains($0.key) }
            let rows = Dictionary(closed.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
            let ordered = policy.order(
                closed.map {
                    EvictableResource(
                        key: CacheKey(hash: $0.key), storedBytes: $0.storedBytes, lastUsed: $0.lastUsedAt)
                })
            for resource in ordered where freed < count {
                guard let row = rows[resource.key.hash] else { continue }
                freed += turns.withLock { _ in
                    resources.scheduler(of: resource.key) == nil ? evict(row, atMost: count - freed) : 0
                }
            }
        }
        return freed
    }

    /// Takes the tail of a resource, or all of it; its head stays longest, being what a next play needs first.
    private func evict(_ row: EvictionCandidate, atMost count: Int64) -> Int64 {
        // It may have been closed a moment ago: a seal written down after this would claim bytes that are gone.
        flusher.write()
        guard let record = try? catalog.resource(key: row.key), let generation = record.generation else { return 0 }
        var freed: Int64 = 0
        do {
            if generation.storedBytes <= count {
                let gone = try catalog.remove(key: row.key)
                freed = generation.storedBytes
                try directory.removeMedia(gone)
            } else {
                let blocks = try catalog.blocks(of: generation.id)
                let file = try directory.openMedia(generation, key: row.key)
                var tail = blocks.endIndex
                var size: Int64 = 0
                while tail > blocks.startIndex, size < count {
                    tail -= 1
                    size += Int64(blocks[tail].length)
                }
                guard let first = blocks[tail...].first, let last = blocks.last else { return 0 }
                let dropped = file.drop(Block.start(of: first.index)..<Block.start(of: last.index + 1))
                freed = dropped.byteCount
                try catalog.dropBlocks(generation.id, indices: dropped.indices)
            }
        } catch {
            events.logger.warning("eviction failed: \(error)")
        }
        capacity.release(freed)
        events.send(.evicted(bytes: freed), key: CacheKey(hash: row.key), address: record.url)
        return freed
    }

    /// Takes what readers have left behind, least recently used resources first.
    private func freeOpen(_ count: Int64) -> Int64 {
        var freed: Int64 = 0
        for scheduler in resources.all where freed < count {
            guard (try? catalog.resource(key: scheduler.key.hash))?.isPinned != true,
                let (generation, ranges) = scheduler.release(count - freed), let disk = generation.disk
            else { continue }
            var bytes: Int64 = 0
            var indices: [Int64] = []
            for range in ranges {
                let dropped = disk.drop(Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound))
                bytes += dropped.byteCount
                indices += dropped.indices
            }
            flusher.waitForRound()
            if let row = generation.row { try? catalog.dropBlocks(row, indices: indices) }
            capacity.release(generation.unclaim(bytes))
            scheduler.released(ranges, of: generation)
            scheduler.send(.evicted(bytes: bytes))
            freed += bytes
        }
        return freed
    }
}
