import ByteRanges

/// The state of a version's media file: the received bytes, the verified bytes among them, and the changes that are not
/// in the catalog yet.
///
/// The type makes the decisions for ``MediaFile``, but does not perform I/O or take locks. The bytes in
/// ``storedRanges`` were received by this process or an earlier one. The bytes in ``trusted`` were received by this
/// process, or this process has checked them against their checksums. Only trusted bytes are served. Checksums from
/// earlier processes are loaded only when their blocks are read; see ``StoredBlocks/seal(of:)``.
///
/// Invariants: trusted bytes are a subset of the received bytes, and the received bytes of a block are a prefix of it.
/// Each received range therefore starts at the start of a block.
struct BlockMap: Sendable {
    /// The length of the whole resource, if it is known.
    private(set) var length: Int64?
    /// Bytes that were received by this process or an earlier one.
    private(set) var storedRanges: ByteRangeSet
    /// Bytes that may be served.
    private(set) var trusted = ByteRangeSet()
    /// Bytes that were trusted and must be checked again.
    private var expired = ByteRangeSet()
    /// The number of times that bytes were removed or stopped being trusted. If the number changes during a read, the
    /// bytes that were read may be zeros, because their space was freed.
    private(set) var removals: UInt64 = 0

    /// Whether blocks are encrypted, in which case every read needs their checksums, not only the first read.
    let keepsSeals: Bool
    /// Checksums that every read needs but that may not be in the catalog yet, because this process created them.
    private var made: [Int64: BlockRecord] = [:]
    /// The indices of the blocks whose checksums ``takeChanges()`` returned last, if blocks are encrypted.
    private var taken: [Int64] = []
    /// Checksums that are already in the catalog. If blocks are unencrypted, a checksum is removed once it has been
    /// used.
    private var stored: [Int64: BlockRecord] = [:]
    /// The newest checksum of each partly received block, if this process has checked or created that checksum.
    private var prefixSeals: [Int64: BlockRecord] = [:]
    /// Ranges that must not change, by ticket.
    private var holds: [UInt64: Range<Int64>] = [:]
    private var lastTicket: UInt64 = 0

    /// The bytes that are recorded in the catalog, or will be recorded once the changes that ``takeChanges()`` returned
    /// last are written.
    private(set) var recorded: ByteRangeSet
    /// Checksums that ``takeChanges()`` has not returned yet, in the order in which they were created.
    private var fresh: [BlockRecord] = []
    /// Recorded blocks that are now missing, and whose removal ``takeChanges()`` has not returned yet. Removals are
    /// written before ``fresh``.
    private var removed = ByteRangeSet()
    /// Whether all ranges must be recorded again.
    private var isRecordStale: Bool

    /// Creates the state from the ranges that earlier processes recorded as received. Invalid parts of these ranges are
    /// skipped.
    ///
    /// - Parameter isRecordStale: Whether the catalog contains the blocks, but not their ranges.
    init(storedRanges: ByteRangeSet = ByteRangeSet(), isRecordStale: Bool = false, keepsSeals: Bool = false) {
        self.keepsSeals = keepsSeals
        self.isRecordStale = isRecordStale
        self.storedRanges = storedRanges.intersection(0..<Block.offsetLimit)
        for range in self.storedRanges where range.lowerBound % Block.size != 0 {
            self.storedRanges.remove(range.lowerBound..<Block.roundUp(range.lowerBound))
        }
        self.recorded = storedRanges
        if self.storedRanges != storedRanges {
            var lost = storedRanges
            lost.subtract(self.storedRanges)
            for range in lost.intersection(0..<Block.offsetLimit) { removed.insert(Self.blocks(of: range)) }
        }
        checkInvariants()
    }

    /// Returns `range`, extended to the bounds of its blocks.
    private static func blocks(of range: Range<Int64>) -> Range<Int64> {
        Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound)
    }

    // MARK: - Queries

    /// Returns the number of received bytes in the block at `index`, from its start.
    func storedCount(of index: Int64) -> Int64 {
        let start = Block.start(of: index)
        guard let prefix = storedRanges.prefix(at: start) else { return 0 }
        return min(prefix.upperBound - start, Block.size)
    }

    /// Returns whether the block at `index`, which has `count` bytes, is complete.
    func isComplete(_ index: Int64, count: Int64) -> Bool {
        count == Block.size || length == Block.start(of: index) + count
    }

    /// Whether every byte of the resource is stored.
    var isWhole: Bool { length.map { storedRanges.contains(0..<$0) } ?? false }

    /// Returns the number of bytes in `range` that are missing.
    func missingByteCount(in range: Range<Int64>) -> Int64 {
        range.upperBound - range.lowerBound - storedRanges.intersection(range).byteCount
    }

    // MARK: - Checksums from earlier processes

    /// Returns the newest checksum of the received bytes of the block at `index`; `nil` if it is not in memory.
    func seal(of index: Int64) -> BlockRecord? { prefixSeals[index] ?? made[index] ?? stored[index] }

    /// Adds checksums from the catalog, unless bytes have been removed since `removals` was read. In that case, the
    /// checksums may belong to other bytes.
    mutating func add(stored records: [BlockRecord], since removals: UInt64) {
        guard removals == self.removals else { return }
        for record in records where isStored(record) { keep(record) }
    }

    private mutating func keep(_ record: BlockRecord) {
        // This limits memory use. Checksums that are removed here are read again when they are needed.
        if stored.count > 4096 { stored = [:] }
        stored[record.index] = record
    }

    private func isStored(_ record: BlockRecord) -> Bool {
        guard record.isPlausible else { return false }
        // A checksum that was read before more bytes were received must not replace a newer one.
        if keepsSeals { return storedCount(of: record.index) == Int64(record.length) }
        let start = Block.start(of: record.index)
        return storedRanges.contains(start) && !trusted.contains(start)
    }

    // MARK: - Reading

    /// The checks that a read of received bytes performs before it returns them.
    struct Reading {
        /// The value of ``BlockMap/removals`` when the read started.
        var removals: UInt64
        /// The received bytes of each block to check; empty if the whole range is trusted.
        var unverified: [Range<Int64>]
    }

    /// Returns the range from `offset` to the end of the trusted bytes around it.
    func trustedPrefix(at offset: Int64) -> Range<Int64>? { trusted.prefix(at: offset) }

    /// Plans a read of `range`.
    ///
    /// - Throws: ``MissingBytes`` if bytes in the range are missing.
    func planReading(_ range: Range<Int64>) throws -> Reading {
        if trusted.contains(range) { return Reading(removals: removals, unverified: []) }
        if let hole = storedRanges.firstMissingRange(in: range) { throw MissingBytes(range: hole) }
        var reading = Reading(removals: removals, unverified: [])
        for piece in trusted.missingRanges(in: range) {
            for index in Block.indices(touching: piece) {
                let start = Block.start(of: index)
                reading.unverified.append(start..<start + storedCount(of: index))
            }
        }
        return reading
    }

    /// Returns the plan for checking one recorded block, whether trusted or not; `nil` if bytes that its checksum
    /// covers are missing.
    func planVerifying(_ record: BlockRecord) -> Reading? {
        storedRanges.contains(record.range) ? Reading(removals: removals, unverified: [record.range]) : nil
    }

    /// Records the result of a read. Checked blocks become trusted, and damaged blocks become missing.
    ///
    /// - Parameter unrecorded: Blocks that were trusted, but have no record to check them against. They are trusted
    ///   again.
    /// - Returns: `false` if bytes were removed in the meantime, in which case the read must be repeated.
    mutating func finish(
        _ reading: Reading, good: [BlockRecord], unrecorded: [Range<Int64>] = [], bad: [Range<Int64>]
    ) -> Bool {
        guard removals == reading.removals else { return false }
        for record in good { trust(record) }
        for range in unrecorded { trusted.formUnion(storedRanges.intersection(range)) }
        for range in bad { invalidate(range) }
        checkInvariants()
        return true
    }

    /// Records that the bytes on disk are those for which `record` was created.
    mutating func trust(_ record: BlockRecord) {
        let count = storedCount(of: record.index)
        if !keepsSeals { stored[record.index] = nil }
        guard count >= Int64(record.length), !trusted.contains(record.range) else { return }
        trusted.insert(record.range)
        if !isComplete(record.index, count: count) { prefixSeals[record.index] = record }
    }

    /// Expires the trust in all bytes, so that they are checked again. Reads in progress are repeated.
    mutating func expireTrust() {
        guard !trusted.isEmpty else { return }
        expired.formUnion(trusted)
        trusted = ByteRangeSet()
        removals &+= 1
    }

    /// Returns whether all of `range` is trusted, or was until its trust expired.
    func wasTrusted(_ range: Range<Int64>) -> Bool {
        trusted.missingRanges(in: range).allSatisfy { expired.contains($0) }
    }

    /// Records that the bytes on disk differ from the received ones. The bytes still count as received, so that the
    /// next read detects the damage.
    ///
    /// - Returns: `false` if bytes have been removed since the read was planned.
    mutating func distrust(_ range: Range<Int64>, after reading: Reading) -> Bool {
        guard removals == reading.removals else { return false }
        for index in Block.indices(touching: range) { prefixSeals[index] = nil }
        trusted.remove(Self.blocks(of: range))
        expired.remove(Self.blocks(of: range))
        // Reads of these bytes that are in progress must be repeated.
        removals &+= 1
        return true
    }

    // MARK: - Storing

    /// Returns the missing parts of `range`, to be written. Each part starts at the start of a block, or at the end of
    /// its received bytes.
    ///
    /// - Throws: ``CacheError`` if the range is beyond the length or the maximum offset; ``MissingBytes`` if it starts
    ///   beyond the received bytes of its block. In the second case, the error contains the missing range before
    ///   `range`.
    func planWriting(_ range: Range<Int64>) throws -> [Range<Int64>] {
        guard Block.isAddressable(range), range.upperBound <= length ?? .max else {
            let end = length.map { "the length of \($0.counted("byte"))" } ?? "the largest offset"
            throw CacheError(.invalidArgument, "can't store \(range.inWords): the range ends beyond \(end)")
        }
        let holes = Array(storedRanges.missingRanges(in: range))
        if let first = holes.first?.lowerBound, first % Block.size != 0, !storedRanges.contains(first - 1) {
            throw MissingBytes(range: Block.roundDown(first) + storedCount(of: Block.index(of: first))..<first)
        }
        return holes
    }

    /// Adds bytes that were received and written, with the checksums of the blocks that they complete.
    mutating func store(_ range: Range<Int64>, completing records: [BlockRecord]) {
        storedRanges.insert(range)
        trusted.insert(range)
        for record in records {
            prefixSeals[record.index] = nil
            if keepsSeals { made[record.index] = record }
        }
        fresh.append(contentsOf: records)
        checkInvariants()
    }

    /// Adds a checksum of the received prefix of an incomplete block.
    mutating func sealPrefix(_ record: BlockRecord) {
        prefixSeals[record.index] = record
        fresh.append(record)
    }

    /// Sets the length of the whole resource.
    ///
    /// - Returns: `false`, and changes nothing, if bytes beyond `length` were received or a different length is already
    ///   set.
    mutating func setLength(_ length: Int64) -> Bool {
        guard length >= storedRanges.bounds?.upperBound ?? 0, self.length ?? length == length else { return false }
        self.length = length
        return true
    }

    // MARK: - Removing

    /// Returns the blocks whose received bytes are in `range`, except those in `kept` and those that a hold covers.
    ///
    /// - Returns: The received bytes of the blocks, as one range for each run of adjacent blocks.
    func evictable(_ range: Range<Int64>, keeping kept: some Collection<Int64>) -> [Range<Int64>] {
        var going = ByteRangeSet()
        for piece in storedRanges.intersection(range) {
            // A block is removed entirely or not at all. The first block therefore starts in the piece, and no received
            // byte follows the last block.
            let start = Block.roundUp(piece.lowerBound)
            let end = storedRanges.contains(piece.upperBound) ? Block.roundDown(piece.upperBound) : piece.upperBound
            if start < end { going.insert(start..<end) }
        }
        for index in kept { going.remove(Block.range(of: index)) }
        for hold in holds.values where !hold.isEmpty { going.remove(Self.blocks(of: hold)) }
        return Array(going)
    }

    /// Removes the blocks that ``evictable(_:keeping:)`` returns.
    ///
    /// - Returns: The received bytes that were removed, as one range for each run of adjacent blocks.
    mutating func evict(_ range: Range<Int64>, keeping kept: some Collection<Int64>) -> [Range<Int64>] {
        let runs = evictable(range, keeping: kept)
        for run in runs { invalidate(run) }
        return runs
    }

    /// Removes the blocks that `range` touches, even if they are held, because damaged bytes must not be served.
    mutating func invalidate(_ range: Range<Int64>) {
        guard !storedRanges.intersection(range).isEmpty else { return }
        let blocks = Self.blocks(of: range)
        let indices = Block.indices(touching: blocks)
        storedRanges.remove(blocks)
        trusted.remove(blocks)
        expired.remove(blocks)
        if !prefixSeals.isEmpty { prefixSeals = prefixSeals.filter { !indices.contains($0.key) } }
        if !made.isEmpty { made = made.filter { !indices.contains($0.key) } }
        if !stored.isEmpty { stored = stored.filter { !indices.contains($0.key) } }
        if !fresh.isEmpty { fresh.removeAll { indices.contains($0.index) } }
        if !recorded.intersection(blocks).isEmpty { removed.insert(blocks) }
        removals &+= 1
        checkInvariants()
    }

    /// Removes all blocks of a file that no longer exists.
    ///
    /// - Returns: The ranges that had been received.
    mutating func invalidateAll() -> [Range<Int64>] {
        let gone = Array(storedRanges)
        if let bounds = storedRanges.bounds { invalidate(bounds) }
        return gone
    }

    /// Returns the blocks below `end` of which no bytes were received, as ranges of whole blocks.
    func emptyBlocks(below end: Int64) -> [Range<Int64>] {
        storedRanges.missingRanges(in: 0..<max(0, min(end, Block.offsetLimit))).compactMap { hole in
            let start = Block.roundUp(hole.lowerBound)
            return start < hole.upperBound ? start..<hole.upperBound : nil
        }
    }

    /// Protects `range` from eviction until ``endHold(_:)``.
    mutating func hold(_ range: Range<Int64>) -> UInt64 {
        lastTicket &+= 1
        holds[lastTicket] = range
        return lastTicket
    }

    /// Ends a hold.
    mutating func endHold(_ ticket: UInt64) { holds[ticket] = nil }

    // MARK: - Changes for the catalog

    /// Whether there are changes to write.
    var hasChanges: Bool { !fresh.isEmpty || !removed.isEmpty || isRecordStale }

    /// Returns the changes that are not in the catalog yet, each change once; `nil` if there are none.
    mutating func takeChanges() -> BlockChanges? {
        guard hasChanges else { return nil }
        // The changes from the previous call have been written or restored.
        let open = Set(fresh.map(\.index))
        for index in taken where !open.contains(index) {
            if let record = made.removeValue(forKey: index) { keep(record) }
        }
        taken = keepsSeals ? Array(open) : []
        let before = recorded
        recorded.subtract(removed)
        for record in fresh { recorded.insert(record.range) }
        defer {
            fresh = []
            removed = ByteRangeSet()
            isRecordStale = false
        }
        return BlockChanges(removed: removed, sealed: fresh, before: before, after: recorded)
    }

    /// Records that the catalog contains the blocks, but not their ranges.
    mutating func recordRangesUnrecorded() { isRecordStale = true }

    /// Restores changes that could not be written. They are placed before later changes.
    mutating func restore(_ changes: BlockChanges) {
        let lost = removed
        fresh = changes.sealed.filter { !lost.contains(Block.start(of: $0.index)) } + fresh
        removed.formUnion(changes.removed)
        recorded = changes.before
        isRecordStale = true
    }

    private func checkInvariants() {
        #if DEBUG
        guard storedRanges.count <= 64, trusted.count <= 64 else { return }
        assert(trusted.allSatisfy { storedRanges.contains($0) }, "verified bytes that are not stored")
        assert(storedRanges.allSatisfy { $0.lowerBound % Block.size == 0 }, "stored bytes that start inside a block")
        #endif
    }
}

/// The changes to the blocks of one generation, for the catalog: removed blocks first, then new checksums.
struct BlockChanges: Sendable {
    /// Blocks that are missing now, as the ranges that they occupied.
    var removed: ByteRangeSet
    /// New checksums. A later checksum of a block replaces an earlier one.
    var sealed: [BlockRecord]
    /// The bytes that were recorded before the changes.
    var before: ByteRangeSet
    /// The bytes that are recorded after the changes.
    var after: ByteRangeSet

    /// Creates a set of changes.
    init(removed: ByteRangeSet, sealed: [BlockRecord], before: ByteRangeSet, after: ByteRangeSet) {
        self.removed = removed
        self.sealed = sealed
        self.before = before
        self.after = after
    }
}
