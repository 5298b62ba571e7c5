import ByteRanges
import Synchronization

/// The bytes of one version of a media file, as far as they have come: written where they belong, read back only when
/// proven to be what was received.
///
/// The one place on the road from origin to player where bytes rest. It decides nothing about what to fetch, keeps no
/// record beyond the process (the catalog does, from ``takeChanges()``) and never waits for bytes to come.
///
/// Every method that touches bytes blocks and belongs on a ``BlockingExecutor``; the questions (``landed``,
/// ``contains(_:)``, …) take a lock for some nanoseconds and may be asked anywhere. All may be called from several
/// threads at once. Reads wait for nobody; landing and evicting take turns with each other, as the kernel would have
/// it anyway for one file, so that no hole is punched into bytes that have just been written.
final class MediaFile: Sendable {
    /// What landing and evicting share. The lock is held across their file calls, which is what it is for: they call
    /// nothing back. Inside it the map's lock is taken, and inside that the ledger's, by ``account``.
    struct Writer {
        /// The landed bytes of each block that a transfer is filling: what is sealed is what was received, not what
        /// the disk says later. At most 64 KiB for each transfer in flight. In memory, where nothing is sealed, only
        /// the blocks are noted; also of an encrypted file, where the bytes are the ground's.
        var tails: [Int64: [UInt8]] = [:]
        /// Why the space of blocks could not be freed. Set once: no more blocks of this file are evicted.
        var punchFailure: CacheError?
    }

    /// The map, and whether its bytes still count.
    struct Ground: Sendable {
        var map: BlockMap
        /// Landed bytes are claimed of a ledger.
        var isCounted = true
        /// Bytes of evicted blocks whose space the disk has not freed. They are claimed until the file is removed.
        var unfreed: Int64 = 0
        /// What is in memory of an encrypted file: the blocks that transfers are filling.
        var landing: [Int64: LandingBlock] = [:]

        /// Lets go of buffers whose blocks are gone.
        mutating func dropUnlanded() {
            landing = landing.filter { map.landed.contains(Block.start(of: $0.key)) || $0.value.count == 0 }
        }
    }

    let file: PooledFile
    let sealer: BlockSealer?
    /// Another process may change the file at any moment: nothing of it stays proven. See ``readShared(_:into:)``.
    let isShared: Bool
    let ground: Mutex<Ground>
    let writer = Mutex(Writer())
    /// Reads an earlier process's seals of the blocks with these indices; blocks.
    let storedSeals: @Sendable (Range<Int64>) throws -> [BlockRecord]
    /// Gives so many landed bytes back to the ledger: they are gone. Called under the map's lock.
    let giveBack: @Sendable (Int64) -> Void

    /// Opens what is there of a generation.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - sealer: The generation's sealer; nil for bytes in memory, which are not sealed.
    ///   - landed: What the catalog says has landed: claimed, and checked at first read.
    ///   - isRecordStale: Whether the catalog has the blocks, but does not say what they hold together.
    ///   - length: The whole resource's length, if it is known.
    ///   - isShared: Whether another process may change the file meanwhile; then it is only read here.
    ///   - storedSeals: Reads the catalog's records of blocks.
    ///   - giveBack: Is told of bytes that had landed and are gone; must neither block nor call back.
    init(
        file: PooledFile, sealer: BlockSealer?, landed: ByteRangeSet = ByteRangeSet(), isRecordStale: Bool = false,
        length: Int64? = nil, isShared: Bool = false,
        storedSeals: @escaping @Sendable (Range<Int64>) throws -> [BlockRecord] = { _ in [] },
        giveBack: @escaping @Sendable (Int64) -> Void = { _ in }
    ) {
        self.file = file
        self.sealer = sealer
        self.isShared = isShared
        var map = BlockMap(
            landed: landed, isRecordStale: isRecordStale, keepsSeals: sealer?.format.isEncrypted ?? false)
        // A length that contradicts the records is a damaged catalog's; reads then find the blocks bad.
        if let length { _ = map.setLength(length) }
        self.ground = Mutex(Ground(map: map))
        self.storedSeals = storedSeals
        self.giveBack = giveBack
    }

    /// Changes the map, and gives back what has gone by it. Beside ``takeFromMap(_:keeping:)`` the one place where landed
    /// bytes stop counting.
    func withMap<R, Failure: Error>(_ body: (inout BlockMap) throws(Failure) -> sending R) throws(Failure) -> sending R
    {
        try ground.withLock { ground throws(Failure) in
            let (before, removals) = (ground.map.landed.byteCount, ground.map.removals)
            defer {
                if !ground.landing.isEmpty, ground.map.removals != removals { ground.dropUnlanded() }
                let gone = before - ground.map.landed.byteCount
                if gone > 0, ground.isCounted { giveBack(gone) }
            }
            return try body(&ground.map)
        }
    }

    /// Takes blocks out of the map that are to be evicted; how many bytes the caller is to give back.
    func takeFromMap(
        _ range: Range<Int64>, keeping tails: some Collection<Int64>
    ) -> (ranges: [Range<Int64>], claim: Int64) {
        let tails = Array(tails)
        return ground.withLock { ground in
            let before = ground.map.landed.byteCount
            let ranges = ground.map.evict(range, keeping: tails)
            return (ranges, ground.isCounted ? before - ground.map.landed.byteCount : 0)
        }
    }

    // MARK: - Questions

    /// All bytes that have landed. A copy: prefer the narrower questions where they do.
    var landed: ByteRangeSet { withMap { $0.landed } }

    /// Number of bytes that have landed.
    var landedByteCount: Int64 { withMap { $0.landed.byteCount } }

    /// The bytes that the file claims: those that have landed, and those of evicted blocks whose space is not freed.
    var claimedByteCount: Int64 { ground.withLock { $0.map.landed.byteCount + $0.unfreed } }

    /// Whether evicted blocks still take space on disk.
    var holdsUnfreedBytes: Bool { ground.withLock { $0.unfreed > 0 } }

    /// The whole resource's length, once it is known.
    var length: Int64? { withMap { $0.length } }

    /// Whether every byte of the resource has landed.
    var isWhole: Bool { withMap { $0.isWhole } }

    /// Whether the bytes are kept in memory only.
    var isInMemory: Bool { sealer == nil }

    /// Whether a block that `range` touches has landed whole.
    func completesBlock(in range: Range<Int64>) -> Bool {
        withMap { map in
            Block.indices(touching: range).contains { map.isComplete($0, count: map.landedCount(of: $0)) }
        }
    }

    /// Whether all of `range` has landed.
    func contains(_ range: Range<Int64>) -> Bool { withMap { $0.landed.contains(range) } }

    /// From `offset` to where the landed bytes around it end; nil if the byte at `offset` has not landed.
    func prefix(at offset: Int64) -> Range<Int64>? { withMap { $0.landed.prefix(at: offset) } }

    /// How many bytes of `range` have not landed.
    func missingByteCount(in range: Range<Int64>) -> Int64 { withMap { $0.missingByteCount(in: range) } }

    /// Where a transfer that shall bring the byte at `offset` has to begin: the end of what has landed of its block.
    func landingOffset(for offset: Int64) -> Int64 {
        withMap { map in
            guard offset >= 0, offset < Block.offsetLimit else { return offset }
            return Block.roundDown(offset) + map.landedCount(of: Block.index(of: offset))
        }
    }

    /// Notes the whole resource's length, so that a short last block counts as complete.
    ///
    /// - Returns: False, and nothing changes, if more has landed or another length was known: that would be another
    ///   version of the resource.
    func setLength(_ length: Int64) -> Bool { withMap { $0.setLength(length) } }

    /// From now on nothing that lands or goes counts: the generation has left the cache.
    ///
    /// - Returns: How many bytes were claimed until now; 0 the second time.
    func endCounting() -> Int64 {
        ground.withLock { ground in
            defer { ground.isCounted = false }
            return ground.isCounted ? ground.map.landed.byteCount + ground.unfreed : 0
        }
    }

    // MARK: - Changes for the catalog

    /// Whether the catalog does not know everything.
    var hasChanges: Bool {
        writer.withLock { writer in
            withMap { map in
                map.hasChanges
                    || isEncrypted && !writer.tails.isEmpty
                    || writer.tails.contains { Int(map.seal(of: $0.key)?.length ?? 0) < $0.value.count }
            }
        }
    }

    /// Seals the blocks that transfers are still filling as they stand; not where that would mean to encipher and write them
    /// anew each time.
    func sealTails() {
        guard sealer != nil, !isEncrypted else { return }
        writer.withLock { writer in
            for index in writer.tails.keys.sorted() { sealTail(at: index, writer) }
        }
    }

    /// Hands out what the catalog does not know yet, each change once; nil if there is nothing.
    func takeChanges() -> BlockChanges? { withMap { $0.takeChanges() } }

    /// Takes back changes that could not be written, for the next time.
    func restore(_ changes: BlockChanges) { withMap { $0.restore(changes) } }

    /// Tells that the transfer which ended at `offset` brings no more: what it left of its last block is sealed, for
    /// the next ``takeChanges()``, and its buffer given back.
    ///
    /// - Returns: What is lost by that: of an encrypted file the disk may refuse what has been in memory until now.
    @discardableResult
    func endLanding(at offset: Int64) -> MissingBytes? {
        guard offset >= 0 else { return nil }
        return writer.withLock { writer in endTail(at: Block.index(of: offset), &writer) }
    }

    private func endTail(at index: Int64, _ writer: inout Writer) -> MissingBytes? {
        defer { writer.tails[index] = nil }
        if isEncrypted { return endLandingBlock(index) }
        sealTail(at: index, writer)
        return nil
    }

    /// The same for all transfers, wherever they ended.
    func endAllLanding() {
        writer.withLock { writer in
            // What is lost by it is a hole: whoever reads it finds out.
            for index in writer.tails.keys.sorted() { _ = endTail(at: index, &writer) }
        }
    }

    private func sealTail(at index: Int64, _ writer: borrowing Writer) {
        guard let sealer, let tail = writer.tails[index], !tail.isEmpty else { return }
        let known = withMap { $0.seal(of: index) }
        guard Int(known?.length ?? 0) < tail.count else { return }
        // A cipher that refuses leaves the prefix unsealed, which only means that it is fetched again another day.
        guard let record = tail.withUnsafeBytes({ try? sealer.seal($0, index: index) }) else { return }
        withMap { map in
            if map.landedCount(of: index) == Int64(record.length) { map.sealPrefix(record) }
        }
    }

    // MARK: - Holds

    /// Keeps `range` from being evicted until ``endHold(_:)``.
    func hold(_ range: Range<Int64>) -> UInt64 { withMap { $0.hold(range) } }

    /// Ends a hold.
    func endHold(_ ticket: UInt64) { withMap { $0.endHold(ticket) } }
}
