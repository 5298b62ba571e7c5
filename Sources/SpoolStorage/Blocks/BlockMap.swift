import ByteRanges

/// What is known of one version of a media file on disk: which bytes have landed, which of them are proven, and what
/// the catalog has not been told yet.
///
/// The decisions behind ``MediaFile``, without its I/O and locks. *Landed* bytes may be claimed by an earlier process;
/// *trusted* ones landed in this process or were checked against their seal in it. Only trusted bytes are served. Seals
/// of earlier processes are not here until their blocks are read: see ``needsSeals(for:)``.
///
/// Invariants: trusted ⊆ landed, and what has landed of a block is a prefix of it — so each landed range begins at a
/// block's start.
struct BlockMap: Sendable {
    /// The whole resource's length, once it is known.
    private(set) var length: Int64?
    /// Bytes that were received, here or in an earlier process.
    private(set) var landed: ByteRangeSet
    /// Bytes that may be served.
    private(set) var trusted = ByteRangeSet()
    /// Bytes that were trusted, and have to be checked again.
    private var expired = ByteRangeSet()
    /// Counts the times that bytes went away; what was read while it changed may be zeros of a punched hole.
    private(set) var removals: UInt64 = 0

    /// Whether blocks are enciphered, so that their seals are needed at each read rather than at the first.
    let keepsSeals: Bool
    /// Seals that the catalog may not have yet, where they are needed at each read: made here, and not known to be
    /// written.
    private var made: [Int64: BlockRecord] = [:]
    /// Blocks whose seals were handed out to be written last.
    private var taken: [Int64] = []
    /// Seals of earlier processes that have been read from the catalog and not been used yet; where they are needed at
    /// each read, some that were.
    private var stored: [Int64: BlockRecord] = [:]
    /// The newest seal of each block that has landed in part and was sealed or checked here.
    private var prefixSeals: [Int64: BlockRecord] = [:]
    /// Ranges that must stay as they are, by ticket.
    private var holds: [UInt64: Range<Int64>] = [:]
    private var lastTicket: UInt64 = 0

    /// What the catalog holds, or will when the changes that were taken last have been written.
    private(set) var recorded: ByteRangeSet
    /// Seals that nobody has taken yet, in the order of sealing.
    private var fresh: [BlockRecord] = []
    /// Recorded blocks that are holes now, and nobody has taken yet; written before ``fresh``.
    private var removed = ByteRangeSet()
    /// What is recorded has to be written once more as a whole.
    private var isRecordStale: Bool

    /// Starts from what earlier processes recorded as landed; what can't be meant is left out.
    ///
    /// - Parameter isRecordStale: Whether the catalog has the blocks, but does not say what they hold together.
    init(landed: ByteRangeSet = ByteRangeSet(), isRecordStale: Bool = false, keepsSeals: Bool = false) {
        self.keepsSeals = keepsSeals
        self.isRecordStale = isRecordStale
        self.landed = landed.intersection(0..<Block.offsetLimit)
        for range in self.landed where range.lowerBound % Block.size != 0 {
            self.landed.remove(range.lowerBound..<Block.roundUp(range.lowerBound))
        }
        self.recorded = landed
        if self.landed != landed {
            var lost = landed
            lost.subtract(self.landed)
            for range in lost.intersection(0..<Block.offsetLimit) { removed.insert(Self.blocks(of: range)) }
        }
        checkInvariants()
    }

    /// `range` out to the bounds of its blocks.
    private static func blocks(of range: Range<Int64>) -> Range<Int64> {
        Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound)
    }

    // MARK: - Questions

    /// How many bytes of the block at `index` have landed, from its start.
    func landedCount(of index: Int64) -> Int64 {
        let start = Block.start(of: index)
        guard let prefix = landed.prefix(at: start) else { return 0 }
        return min(prefix.upperBound - start, Block.size)
    }

    /// Whether no more bytes belong to the block at `index`, given that it has `count` of them.
    func isComplete(_ index: Int64, count: Int64) -> Bool {
        count == Block.size || length == Block.start(of: index) + count
    }

    /// Whether every byte of the resource is there.
    var isWhole: Bool { length.map { landed.contains(0..<$0) } ?? false }

    /// How many bytes of `range` have not landed.
    func missingByteCount(in range: Range<Int64>) -> Int64 {
        range.upperBound - range.lowerBound - landed.intersection(range).byteCount
    }

    // MARK: - Seals of earlier processes

    /// The newest seal over landed bytes of the block at `index`, if it is here.
    func seal(of index: Int64) -> BlockRecord? { prefixSeals[index] ?? made[index] ?? stored[index] }

    /// Takes seals from the catalog, unless bytes have gone since `removals` was what it was: they may be of others.
    mutating func add(stored records: [BlockRecord], since removals: UInt64) {
        guard removals == self.removals else { return }
        for record in records where isStored(record) { keep(record) }
    }

    private mutating func keep(_ record: BlockRecord) {
        // What was read ahead and not used is read again rather than kept for ever.
        if stored.count > 4096 { stored = [:] }
        stored[record.index] = record
    }

    private func isStored(_ record: BlockRecord) -> Bool {
        guard record.isPlausible else { return false }
        // One that was read before more landed must not take the place of the newer one.
        if keepsSeals { return landedCount(of: record.index) == Int64(record.length) }
        let start = Block.start(of: record.index)
        return landed.contains(start) && !trusted.contains(start)
    }

    // MARK: - Reading

    /// What a read of landed bytes has to check before it may hand them out.
    struct Reading {
        /// ``BlockMap/removals`` when the read began.
        var removals: UInt64
        /// The landed bytes of each block to check; empty when all of the range is trusted.
        var unverified: [Range<Int64>]
    }

    /// From `offset` to where the trusted bytes around it end.
    func trustedPrefix(at offset: Int64) -> Range<Int64>? { trusted.prefix(at: offset) }

    /// Plans a read of `range`.
    ///
    /// - Throws: ``MissingBytes`` if some of it has not landed.
    func planReading(_ range: Range<Int64>) throws -> Reading {
        if trusted.contains(range) { return Reading(removals: removals, unverified: []) }
        if let hole = landed.firstHole(in: range) { throw MissingBytes(range: hole) }
        var reading = Reading(removals: removals, unverified: [])
        for piece in trusted.holes(in: range) {
            for index in Block.indices(touching: piece) {
                let start = Block.start(of: index)
                reading.unverified.append(start..<start + landedCount(of: index))
            }
        }
        return reading
    }

    /// Plans the check of one recorded block, trusted or not; nil if the bytes that it seals have not landed.
    func planVerifying(_ record: BlockRecord) -> Reading? {
        landed.contains(record.range) ? Reading(removals: removals, unverified: [record.range]) : nil
    }

    /// Records the result of a read. Checked blocks become trusted, and damaged ones are missing.
    ///
    /// - Parameter unrecorded: Blocks that were trusted and have no record to check them with. They are trusted again.
    /// - Returns: `false` if bytes were removed meanwhile, so that the read has to be repeated.
    mutating func finish(
        _ reading: Reading, good: [BlockRecord], unrecorded: [Range<Int64>] = [], bad: [Range<Int64>]
    ) -> Bool {
        guard removals == reading.removals else { return false }
        for record in good { trust(record) }
        for range in unrecorded { trusted.formUnion(landed.intersection(range)) }
        for range in bad { invalidate(range) }
        checkInvariants()
        return true
    }

    /// Notes that the bytes on disk are those that `record` was made from.
    mutating func trust(_ record: BlockRecord) {
        let count = landedCount(of: record.index)
        if !keepsSeals { stored[record.index] = nil }
        guard count >= Int64(record.length), !trusted.contains(record.range) else { return }
        trusted.insert(record.range)
        if !isComplete(record.index, count: count) { prefixSeals[record.index] = record }
    }

    /// Ends the trust in all bytes, so that they are checked again. Current reads are repeated.
    mutating func expireTrust() {
        guard !trusted.isEmpty else { return }
        expired.formUnion(trusted)
        trusted = ByteRangeSet()
        removals &+= 1
    }

    /// Whether all of `range` is trusted, or was until its trust expired.
    func wasTrusted(_ range: Range<Int64>) -> Bool {
        trusted.holes(in: range).allSatisfy { expired.contains($0) }
    }

    /// Notes that the bytes on disk are not what was received, but leaves them landed: whoever reads them finds out.
    ///
    /// - Returns: False if bytes went away since the reading was planned.
    mutating func distrust(_ range: Range<Int64>, after reading: Reading) -> Bool {
        guard removals == reading.removals else { return false }
        for index in Block.indices(touching: range) { prefixSeals[index] = nil }
        trusted.remove(Self.blocks(of: range))
        expired.remove(Self.blocks(of: range))
        // Who is reading them now has to look again.
        removals &+= 1
        return true
    }

    // MARK: - Landing

    /// The parts of `range` that have not landed, to be written; each starts at a block's start or landed end.
    ///
    /// - Throws: ``CacheError`` if the range lies beyond the length or the largest offset; ``MissingBytes``, with the
    ///   bytes that are missing before it, if it begins past what has landed of its block, as when that block was found
    ///   bad meanwhile.
    func planLanding(_ range: Range<Int64>) throws -> [Range<Int64>] {
        guard Block.isAddressable(range), range.upperBound <= length ?? .max else {
            let end = length.map { "the length \($0)" } ?? "the largest offset"
            throw CacheError(.invalidArgument, "\(range.inWords) can't be stored: they are beyond \(end)")
        }
        let holes = Array(landed.holes(in: range))
        if let first = holes.first?.lowerBound, first % Block.size != 0, !landed.contains(first - 1) {
            throw MissingBytes(range: Block.roundDown(first) + landedCount(of: Block.index(of: first))..<first)
        }
        return holes
    }

    /// Takes bytes that were received and written, with the seals of the blocks that they complete.
    mutating func land(_ range: Range<Int64>, completing records: [BlockRecord]) {
        landed.insert(range)
        trusted.insert(range)
        for record in records {
            prefixSeals[record.index] = nil
            if keepsSeals { made[record.index] = record }
        }
        fresh.append(contentsOf: records)
        checkInvariants()
    }

    /// Takes a seal over the landed prefix of a block that is not complete.
    mutating func sealPrefix(_ record: BlockRecord) {
        prefixSeals[record.index] = record
        fresh.append(record)
    }

    /// Notes the whole resource's length.
    ///
    /// - Returns: False, and nothing changes, if more has landed or another length was known.
    mutating func setLength(_ length: Int64) -> Bool {
        guard length >= landed.bounds?.upperBound ?? 0, self.length ?? length == length else { return false }
        self.length = length
        return true
    }

    // MARK: - Going away

    /// Forgets the blocks whose landed bytes lie in `range`, except those of `kept` and those that a hold covers.
    ///
    /// - Returns: The landed bytes that went, by run of neighbouring blocks.
    mutating func evict(_ range: Range<Int64>, keeping kept: some Collection<Int64>) -> [Range<Int64>] {
        var going = ByteRangeSet()
        for piece in landed.intersection(range) {
            // A block goes whole or stays whole: the first starts in the piece, the last has no landed byte behind it.
            let start = Block.roundUp(piece.lowerBound)
            let end = landed.contains(piece.upperBound) ? Block.roundDown(piece.upperBound) : piece.upperBound
            if start < end { going.insert(start..<end) }
        }
        for index in kept { going.remove(Block.range(of: index)) }
        for hold in holds.values where !hold.isEmpty { going.remove(Self.blocks(of: hold)) }
        let runs = Array(going)
        for run in runs { invalidate(run) }
        return runs
    }

    /// Forgets blocks, without regard to holds: what is bad must not be served.
    mutating func invalidate(_ range: Range<Int64>) {
        guard !landed.intersection(range).isEmpty else { return }
        let blocks = Self.blocks(of: range)
        let indices = Block.indices(touching: blocks)
        landed.remove(blocks)
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

    /// Forgets everything: there is no file.
    ///
    /// - Returns: What had landed.
    mutating func invalidateAll() -> [Range<Int64>] {
        let gone = Array(landed)
        if let bounds = landed.bounds { invalidate(bounds) }
        return gone
    }

    /// The blocks that hold no landed byte below `end`, as runs of whole blocks.
    func emptyBlocks(below end: Int64) -> [Range<Int64>] {
        landed.holes(in: 0..<max(0, min(end, Block.offsetLimit))).compactMap { hole in
            let start = Block.roundUp(hole.lowerBound)
            return start < hole.upperBound ? start..<hole.upperBound : nil
        }
    }

    /// Keeps `range` from being evicted until ``endHold(_:)``.
    mutating func hold(_ range: Range<Int64>) -> UInt64 {
        lastTicket &+= 1
        holds[lastTicket] = range
        return lastTicket
    }

    /// Ends a hold.
    mutating func endHold(_ ticket: UInt64) { holds[ticket] = nil }

    // MARK: - What the catalog has to be told

    /// Whether there is anything to write.
    var hasChanges: Bool { !fresh.isEmpty || !removed.isEmpty || isRecordStale }

    /// Hands out what the catalog does not know yet, each change once; nil if there is none.
    mutating func takeChanges() -> BlockChanges? {
        guard hasChanges else { return nil }
        // What was handed out before has been written, or was taken back.
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

    /// Records that the catalog has the blocks, but not their ranges.
    mutating func noteRangesUnrecorded() { isRecordStale = true }

    /// Takes back changes that could not be written; they come before what has changed since.
    mutating func restore(_ changes: BlockChanges) {
        let lost = removed
        fresh = changes.sealed.filter { !lost.contains(Block.start(of: $0.index)) } + fresh
        removed.formUnion(changes.removed)
        recorded = changes.before
        isRecordStale = true
    }

    private func checkInvariants() {
        #if DEBUG
        guard landed.count <= 64, trusted.count <= 64 else { return }
        assert(trusted.allSatisfy { landed.contains($0) }, "verified bytes that are not stored")
        assert(landed.allSatisfy { $0.lowerBound % Block.size == 0 }, "stored bytes that start inside a block")
        #endif
    }
}

/// Changes of one generation's blocks, for the catalog: first the removed ones go, then the sealed ones come.
struct BlockChanges: Sendable {
    /// Blocks that are holes now, as the bytes that they had room for.
    var removed: ByteRangeSet
    /// New seals; of one block a later one replaces the former.
    var sealed: [BlockRecord]
    /// What was recorded before.
    var before: ByteRangeSet
    /// What is recorded afterwards.
    var after: ByteRangeSet

    /// Creates changes.
    init(removed: ByteRangeSet, sealed: [BlockRecord], before: ByteRangeSet, after: ByteRangeSet) {
        self.removed = removed
        self.sealed = sealed
        self.before = before
        self.after = after
    }
}
