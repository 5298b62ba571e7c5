import ByteRanges
import Synchronization

/// The bytes of one version of a resource. They are written at their offsets, and are returned only if they are proven
/// to be the bytes that were received.
///
/// This is the only type between the origin and the player that stores bytes. It does not decide what is fetched, and
/// never waits for bytes from the network. It does not store records itself. The catalog stores the records that
/// ``takeChanges()`` returns.
///
/// Methods that access bytes block the calling thread, and should run on a ``BlockingExecutor``. The queries
/// (``storedRanges``, ``contains(_:)``, …) hold a lock for a few nanoseconds and may be called from any thread. Reads
/// do not wait for other operations. Storing and evicting are mutually exclusive, so that space is not freed right
/// after bytes were written to it.
final class MediaFile: Sendable {
    /// The state that storing and evicting share. The writer's lock is held during the file operations for storing and
    /// evicting, which do not make callbacks. The map's lock is taken while the writer's lock is held, and the lock of
    /// the space account while the map's lock is held.
    struct WriteState: Sendable {
        /// The stored bytes of each block that a transfer is filling, at most 64 KiB for each transfer. They are
        /// buffered because checksums cover the received bytes, not those that the disk returns later. Media in memory
        /// has no checksums and needs no buffers. For an encrypted file, the buffers are in ``StoredBlocks``.
        var tails: [Int64: [UInt8]] = [:]
        var reclaimer: BlockReclaimer

        /// Removes the buffers of blocks whose bytes have been discarded. The transfer that filled such a block may
        /// have ended in another block.
        mutating func removeStaleTails(_ blocks: StoredBlocks) {
            guard !tails.isEmpty else { return }
            let indices = Array(tails.keys)
            for index in blocks.withMap({ map in indices.filter { map.storedCount(of: $0) == 0 } }) {
                tails[index] = nil
            }
        }
    }

    let file: PooledFile
    let sealer: BlockSealer?
    /// Whether another process may change the file at any time, in which case none of its blocks stay proven.
    let isShared: Bool
    let blocks: StoredBlocks
    /// The encryption; `nil` if the file is unencrypted.
    let encrypted: EncryptedBlocks?
    let writer: TryableLock<WriteState>

    /// Creates the object for a version's file, without accessing the file.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - sealer: The version's sealer; `nil` for bytes in memory, which have no checksums.
    ///   - storedRanges: The ranges that are recorded in the catalog. They are claimed immediately, and checked when
    ///     they are first read.
    ///   - isRecordStale: Whether the catalog contains the blocks, but not their ranges.
    ///   - length: The length of the whole resource; `nil` if it is unknown.
    ///   - isShared: Whether another process may change the file. If so, this object only reads the file.
    ///   - elapsed: A function that returns the monotonic time, which determines when blocks are checked again.
    ///   - storedSeals: A function that reads the catalog's records of blocks.
    ///   - releaseClaim: A function that is called with the number of bytes that are no longer stored. It must neither
    ///     block nor call this object.
    init(
        file: PooledFile, sealer: BlockSealer?, storedRanges: ByteRangeSet = ByteRangeSet(),
        isRecordStale: Bool = false,
        length: Int64? = nil, isShared: Bool = false, elapsed: @escaping @Sendable () -> Duration = { .zero },
        storedSeals: @escaping @Sendable (Range<Int64>) throws -> [BlockRecord] = { _ in [] },
        releaseClaim: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        self.file = file
        self.sealer = sealer
        self.isShared = isShared
        let isEncrypted = sealer?.format.isEncrypted ?? false
        var map = BlockMap(storedRanges: storedRanges, isRecordStale: isRecordStale, keepsSeals: isEncrypted)
        // A length that contradicts the records comes from a damaged catalog. Reads then find the blocks damaged.
        if let length { _ = map.setLength(length) }
        let blocks = StoredBlocks(
            file: file, map: map, trustEnds: sealer != nil && !isEncrypted, elapsed: elapsed, storedSeals: storedSeals,
            releaseClaim: releaseClaim)
        self.blocks = blocks
        encrypted = isEncrypted ? sealer.map { EncryptedBlocks(blocks, $0) } : nil
        // Writing to memory never blocks a thread.
        writer = TryableLock(
            WriteState(reclaimer: BlockReclaimer(blocks)), sealer == nil ? .neverWaits : .mayWaitForFile)
    }

    // MARK: - Queries

    /// All stored bytes. This is a copy, so prefer the narrower queries.
    var storedRanges: ByteRangeSet { blocks.withMap { $0.storedRanges } }

    /// The number of stored bytes.
    var storedByteCount: Int64 { blocks.withMap { $0.storedRanges.byteCount } }

    /// The number of bytes that the file claims: stored bytes, and evicted or refused bytes whose space is not freed
    /// yet.
    var claimedByteCount: Int64 { blocks.claimedByteCount }

    /// Whether evicted blocks or refused bytes still use space on disk.
    var holdsUnfreedBytes: Bool { blocks.holdsUnfreedBytes }

    /// The number of stored bytes that are only in memory, because an encrypted block is not written until it is
    /// complete.
    var memoryByteCount: Int64 { encrypted?.memoryByteCount ?? 0 }

    /// Whether blocks of an encrypted file are only in memory, because their transfers have not ended.
    var hasUnfinishedBlocks: Bool { encrypted != nil && blocks.withFilling { _, filling in !filling.isEmpty } }

    /// The length of the whole resource; `nil` if it is unknown.
    var length: Int64? { blocks.withMap { $0.length } }

    /// Whether every byte of the resource is stored.
    var isWhole: Bool { blocks.withMap { $0.isWhole } }

    /// Whether the bytes are only in memory.
    var isInMemory: Bool { sealer == nil }

    /// Whether the bytes in the file are encrypted.
    var isEncrypted: Bool { encrypted != nil }

    /// Returns whether a block that `range` touches is complete.
    func completesBlock(in range: Range<Int64>) -> Bool {
        blocks.withMap { map in
            Block.indices(touching: range).contains { map.isComplete($0, count: map.storedCount(of: $0)) }
        }
    }

    /// Returns whether all of `range` is stored.
    func contains(_ range: Range<Int64>) -> Bool { blocks.withMap { $0.storedRanges.contains(range) } }

    /// Returns the run of stored bytes that starts at `offset`; `nil` if the byte at `offset` is not stored.
    func prefix(at offset: Int64) -> Range<Int64>? { blocks.withMap { $0.storedRanges.prefix(at: offset) } }

    /// Returns the number of bytes in `range` that are not stored.
    func missingByteCount(in range: Range<Int64>) -> Int64 { blocks.withMap { $0.missingByteCount(in: range) } }

    /// Sets the length of the whole resource, so that a short last block counts as complete.
    ///
    /// - Returns: `false`, and changes nothing, if bytes beyond the length are stored or a different length has already
    ///   been set. In that case, the length belongs to a different version.
    func setLength(_ length: Int64) -> Bool { blocks.withMap { $0.setLength(length) } }

    /// Ends all claims, because the version is no longer in the cache.
    ///
    /// - Returns: The number of bytes that had been claimed; 0 if the claims had already ended.
    func endCounting() -> Int64 { blocks.endCounting() }

    // MARK: - Changes for the catalog

    /// Whether there are changes that are not in the catalog, or the file is being written to. Reading the property
    /// does not wait for the file.
    var hasChanges: Bool {
        let found = writer.withLockIfAvailable { writer in
            writer.removeStaleTails(blocks)
            return blocks.withMap { map in
                map.hasChanges
                    || isEncrypted && !writer.tails.isEmpty
                    || writer.tails.contains { Int(map.seal(of: $0.key)?.length ?? 0) < $0.value.count }
            }
        }
        return found ?? true
    }

    /// Creates checksums of the blocks that transfers are still filling. Encrypted blocks are skipped, because they
    /// would be encrypted and written again each time. The method does not wait for the file.
    ///
    /// - Returns: `false` if the file is being written to, in which case no checksums are created.
    @discardableResult
    func sealTails() -> Bool {
        guard sealer != nil, !isEncrypted else { return true }
        let sealed: Void? = writer.withLockIfAvailable { writer in
            for index in writer.tails.keys.sorted() { sealTail(at: index, writer.tails) }
        }
        return sealed != nil
    }

    /// Returns the changes that are not in the catalog, each one once; `nil` if there are none.
    func takeChanges() -> BlockChanges? { blocks.withMap { $0.takeChanges() } }

    /// Records that the catalog contains the blocks, but not their ranges. The next changes include the ranges.
    func recordRangesUnrecorded() { blocks.withMap { $0.recordRangesUnrecorded() } }

    /// Restores changes that could not be written, so that they are included in the next attempt.
    func restore(_ changes: BlockChanges) { blocks.withMap { $0.restore(changes) } }

    /// Ends the transfer that has stored bytes up to `offset`. The stored part of its last block gets a checksum for
    /// the next call to ``takeChanges()``, and its buffer is released.
    ///
    /// - Returns: The bytes that were lost because the disk rejected them. The last bytes of an encrypted file are only
    ///   in memory before this call.
    @discardableResult
    func endWriting(at offset: Int64) -> MissingBytes? {
        guard offset >= 0 else { return nil }
        return writer.withLock { writer in endTail(at: Block.index(of: offset), &writer) }
    }

    private func endTail(at index: Int64, _ writer: inout WriteState) -> MissingBytes? {
        defer { writer.tails[index] = nil }
        if let encrypted { return encrypted.endFilling(index) }
        sealTail(at: index, writer.tails)
        return nil
    }

    /// Ends all transfers, at any offset.
    ///
    /// - Returns: Whether there were any transfers.
    @discardableResult
    func endAllWriting() -> Bool { writer.withLock { endAllTails(&$0) } }

    /// Ends all transfers, unless the file is being written to.
    ///
    /// - Returns: The same as ``endAllWriting()``, or `nil` if the file is being written to.
    @discardableResult
    func endAllWritingIfFree() -> Bool? { writer.withLockIfAvailable { endAllTails(&$0) } }

    private func endAllTails(_ writer: inout WriteState) -> Bool {
        let indices = writer.tails.keys.sorted()
        // Lost bytes count as missing, and the next reader fetches them again.
        for index in indices { _ = endTail(at: index, &writer) }
        return !indices.isEmpty
    }

    private func sealTail(at index: Int64, _ tails: [Int64: [UInt8]]) {
        guard let sealer, let tail = tails[index], !tail.isEmpty else { return }
        let known = blocks.withMap { $0.seal(of: index) }
        guard Int(known?.length ?? 0) < tail.count else { return }
        // If the cipher fails, the bytes do not get a checksum, and are fetched again later.
        guard let record = tail.withUnsafeBytes({ try? sealer.seal($0, index: index) }) else { return }
        blocks.withMap { map in
            if map.storedCount(of: index) == Int64(record.length) { map.sealPrefix(record) }
        }
    }

    // MARK: - Holds

    /// Protects `range` from eviction until ``endHold(_:)``.
    func hold(_ range: Range<Int64>) -> UInt64 { blocks.withMap { $0.hold(range) } }

    /// Ends a hold.
    func endHold(_ ticket: UInt64) { blocks.withMap { $0.endHold(ticket) } }

    /// Marks the file, if it is open, as read by a client of a cache that is being closed. Without the mark, another
    /// cache that opens the directory may free the bytes, so the file is closed if it can't be marked.
    func markAsInUse() {
        guard let open = file.openNow else { return }
        let isMarked = (try? open.file.lock(.shared)) == true  // After a failure, the file is closed.
        if !isMarked { file.close() }
    }

    // MARK: - Freeing space

    /// Evicts the blocks whose stored bytes are within `range`.
    ///
    /// A block is evicted entirely or not at all. Blocks that a transfer is filling (until ``endWriting(at:)``) and
    /// blocks that a slice holds stay. All blocks stay if readers of a closed cache still use the file. The blocks are
    /// removed from the map first, and their space is freed afterwards, so that no reader sees zeros. Record the change
    /// in the catalog afterwards. If that record is lost, the checksums detect the eviction.
    ///
    /// After the disk has failed to free space, no more blocks are evicted until that space is freed. Each call retries
    /// freeing it once.
    ///
    /// If the file is being written to, no block is evicted. Eviction frees space for all keys, so it must not wait for
    /// a single file. Writes to memory take almost no time, so eviction waits for them.
    func evict(_ range: Range<Int64>) -> BlockReclaimer.Evicted {
        if sealer == nil { return writer.withLock { evict(range, &$0) } }
        return writer.withLockIfAvailable { evict(range, &$0) } ?? BlockReclaimer.Evicted()
    }

    private func evict(_ range: Range<Int64>, _ writer: inout WriteState) -> BlockReclaimer.Evicted {
        writer.removeStaleTails(blocks)
        return writer.reclaimer.evict(range, keeping: writer.tails.keys)
    }

    /// Discards recorded blocks that do not use disk space. After an unclean shutdown, such blocks have been evicted or
    /// have not reached the disk, or the file no longer exists.
    ///
    /// - Returns: The discarded blocks, whose claims have ended. The caller records the change in the catalog.
    /// - Throws: ``CacheError`` if the disk can't be read. No block is then discarded.
    func invalidateHoles() throws -> [Range<Int64>] {
        try writer.withLock { writer in
            try writer.reclaimer.invalidateHoles(keeping: writer.tails.keys) ?? invalidateAll(&writer)
        }
    }

    /// Discards all blocks, including unfinished ones.
    ///
    /// - Returns: The discarded blocks. The caller records the change in the catalog.
    func invalidateAll() -> [Range<Int64>] { writer.withLock { invalidateAll(&$0) } }

    private func invalidateAll(_ writer: inout WriteState) -> [Range<Int64>] {
        writer.tails = [:]
        return blocks.invalidateAll()
    }

    /// Frees the disk space that whole blocks without stored bytes still occupy after an unclean shutdown.
    ///
    /// - Throws: ``CacheError`` if the disk can't free the space.
    func freeUnclaimed() throws { try writer.withLock { _ = try $0.reclaimer.freeUnclaimed() } }
}
