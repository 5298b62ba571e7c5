import ByteRanges

/// What is known of one version of a media file on disk: which bytes have landed, which of them are proven, and the
/// seals that wait to be recorded.
///
/// The decisions behind ``MediaFile``, without its I/O and locks. *Landed* bytes may be claimed by an earlier process;
/// *trusted* ones landed in this process or were checked against their seal in it. Only trusted bytes are served.
///
/// Invariants: trusted ⊆ landed, and what has landed of a block is a prefix of it — so each landed range begins at a
/// block's start.
struct BlockMap: Sendable {
    /// The whole resource's length, once it is known.
    private(set) var length: Int64?
    /// Bytes that were received, here or in an earlier process.
    private(set) var landed = ByteRangeSet()
    /// Bytes that may be served.
    private(set) var trusted = ByteRangeSet()
    /// Counts the times that bytes went away; what was read while it changed may be zeros of a punched hole.
    private(set) var drops: UInt64 = 0

    /// What an earlier process sealed, by ascending index. Meant only where bytes have landed and are not trusted.
    private var claims: [BlockRecord]
    private var unverifiedCount: Int
    /// The newest seal of each block that has landed in part and was sealed or checked here.
    private var prefixSeals: [Int64: BlockRecord] = [:]
    /// Seals that nobody has taken yet, in the order of sealing.
    private var fresh: [BlockRecord] = []
    /// Ranges that must stay as they are, by ticket.
    private var holds: [UInt64: Range<Int64>] = [:]
    private var lastTicket: UInt64 = 0

    /// Starts from the records of earlier processes; implausible ones, and repeated ones but the first, are left out.
    init(claims: [BlockRecord] = []) {
        var kept = claims.filter(\.isPlausible)
        if zip(kept, kept.dropFirst()).contains(where: { $0.index >= $1.index }) {
            var seen: Set<Int64> = []
            kept = kept.filter { seen.insert($0.index).inserted }.sorted { $0.index < $1.index }
        }
        self.claims = kept
        self.unverifiedCount = kept.count
        // Neighbours are joined first: one insertion for each run of blocks, not for each block.
        var run: Range<Int64>?
        for record in kept {
            if let open = run, open.upperBound == record.range.lowerBound {
                run = open.lowerBound..<record.range.upperBound
            } else {
                if let run { landed.insert(run) }
                run = record.range
            }
        }
        if let run { landed.insert(run) }
        checkInvariants()
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

    /// The newest seal over landed bytes of the block at `index` that is still here; complete blocks that were
    /// verified or sealed here have none any more.
    func record(of index: Int64) -> BlockRecord? {
        if let record = prefixSeals[index] { return record }
        guard !trusted.contains(Block.start(of: index)), landed.contains(Block.start(of: index)) else { return nil }
        return claim(at: index)
    }

    private func claim(at index: Int64) -> BlockRecord? {
        var low = 0
        var high = claims.count
        while low < high {
            let middle = (low + high) / 2
            if claims[middle].index < index { low = middle + 1 } else { high = middle }
        }
        return low < claims.count && claims[low].index == index ? claims[low] : nil
    }

    // MARK: - Reading

    /// What a read of landed bytes has to check before it may hand them out.
    struct Reading {
        /// ``BlockMap/drops`` when the read began.
        var drops: UInt64
        /// Blocks to check; empty when all of the range is trusted.
        var unverified: [BlockRecord]
    }

    /// Plans a read of `range`.
    ///
    /// - Throws: ``BadBlocks`` without indices if some of it has not landed.
    func planReading(_ range: Range<Int64>) throws -> Reading {
        if trusted.contains(range) { return Reading(drops: drops, unverified: []) }
        if let hole = landed.firstHole(in: range) { throw BadBlocks(range: hole) }
        var reading = Reading(drops: drops, unverified: [])
        for piece in trusted.holes(in: range) {
            for index in Block.indices(touching: piece) {
                if let record = claim(at: index) { reading.unverified.append(record) }
            }
        }
        return reading
    }

    /// Plans the check of one block, trusted or not; nil if the bytes that it seals have not landed.
    func planVerifying(_ record: BlockRecord) -> Reading? {
        landed.contains(record.range) ? Reading(drops: drops, unverified: [record]) : nil
    }

    /// Takes the outcome of a read: checked blocks become trusted, bad ones are dropped.
    ///
    /// - Returns: False if bytes went away meanwhile, and the read has to begin again.
    mutating func finish(_ reading: Reading, good: [BlockRecord], bad: [Int64]) -> Bool {
        guard drops == reading.drops else { return false }
        for record in good { trust(record) }
        forget(bad)
        checkInvariants()
        return true
    }

    /// Notes that the bytes on disk are those that `record` was made from.
    mutating func trust(_ record: BlockRecord) {
        let count = landedCount(of: record.index)
        guard !trusted.contains(record.range), count >= Int64(record.length) else { return }
        trusted.insert(record.range)
        if !isComplete(record.index, count: count) { prefixSeals[record.index] = record }
        noteVerified()
    }

    private mutating func noteVerified(_ count: Int = 1) {
        unverifiedCount -= count
        if unverifiedCount <= 0 { claims = [] }
    }

    // MARK: - Landing

    /// The parts of `range` that have not landed, to be written; each starts at a block's start or landed end.
    ///
    /// - Throws: ``CacheError`` if the range lies beyond the length or the largest offset;
    ///   ``BadBlocks`` without indices, with the bytes that are missing before it if it begins past what has landed of its
    ///   block, as when that block was found bad meanwhile.
    func planLanding(_ range: Range<Int64>) throws -> [Range<Int64>] {
        guard Block.isAddressable(range), range.upperBound <= length ?? .max else {
            let end = length.map { "the length \($0)" } ?? "the largest offset"
            throw CacheError(.invalidArgument, "Bytes \(range) can't land: they lie beyond \(end).")
        }
        let holes = Array(landed.holes(in: range))
        if let first = holes.first?.lowerBound, first % Block.size != 0, !landed.contains(first - 1) {
            throw BadBlocks(range: Block.roundDown(first) + landedCount(of: Block.index(of: first))..<first)
        }
        return holes
    }

    /// Takes bytes that were received and written, with the seals of the blocks that they complete.
    mutating func land(_ range: Range<Int64>, completing records: [BlockRecord]) {
        landed.insert(range)
        trusted.insert(range)
        for record in records { prefixSeals[record.index] = nil }
        fresh.append(contentsOf: records)
        checkInvariants()
    }

    /// Takes a seal over the landed prefix of a block that is not complete.
    mutating func sealPrefix(_ record: BlockRecord) {
        prefixSeals[record.index] = record
        fresh.append(record)
    }

    /// Hands out the seals that wait to be recorded, each once.
    mutating func takeSeals() -> [BlockRecord] {
        defer { fresh = [] }
        return fresh
    }

    /// Notes the whole resource's length.
    ///
    /// - Returns: False, and nothing changes, if more has landed or another length was known.
    mutating func setLength(_ length: Int64) -> Bool {
        guard length >= landed.bounds?.upperBound ?? 0, self.length ?? length == length else { return false }
        self.length = length
        return true
    }

    // MARK: - Dropping

    /// Forgets the blocks whose landed bytes lie in `range`, except those of `kept` and those that a hold covers.
    ///
    /// - Returns: The landed bytes that went, by run of neighbouring blocks.
    mutating func drop(_ range: Range<Int64>, keeping kept: some Collection<Int64>) -> [Range<Int64>] {
        var going = ByteRangeSet()
        for piece in landed.intersection(range) {
            // A block goes whole or stays whole: the first starts in the piece, the last has no landed byte behind it.
            let start = Block.roundUp(piece.lowerBound)
            let end = landed.contains(piece.upperBound) ? Block.roundDown(piece.upperBound) : piece.upperBound
            if start < end { going.insert(start..<end) }
        }
        for index in kept { going.remove(Block.range(of: index)) }
        for hold in holds.values where !hold.isEmpty {
            going.remove(Block.roundDown(hold.lowerBound)..<Block.roundUp(hold.upperBound))
        }
        let runs = Array(going)
        for run in runs { forget(run) }
        checkInvariants()
        return runs
    }

    /// Forgets single blocks, bad ones, without regard to holds: what is bad must not be served.
    mutating func forget(_ indices: some Sequence<Int64>) {
        for index in indices { forget(Block.range(of: index)) }
    }

    private mutating func forget(_ range: Range<Int64>) {
        let gone = landed.intersection(range)
        guard !gone.isEmpty else { return }
        let indices = Block.indices(touching: range)
        for piece in gone {
            for hole in trusted.holes(in: piece) { noteVerified(Block.indices(touching: hole).count) }
        }
        landed.remove(range)
        trusted.remove(range)
        if !prefixSeals.isEmpty { prefixSeals = prefixSeals.filter { !indices.contains($0.key) } }
        if !fresh.isEmpty { fresh.removeAll { indices.contains($0.index) } }
        drops &+= 1
    }

    /// The blocks that hold no landed byte below `end`, as runs of whole blocks.
    func emptyBlocks(below end: Int64) -> [Range<Int64>] {
        landed.holes(in: 0..<max(0, min(end, Block.offsetLimit))).compactMap { hole in
            let start = Block.roundUp(hole.lowerBound)
            return start < hole.upperBound ? start..<hole.upperBound : nil
        }
    }

    /// Keeps `range` from being dropped until ``release(_:)``.
    mutating func hold(_ range: Range<Int64>) -> UInt64 {
        lastTicket &+= 1
        holds[lastTicket] = range
        return lastTicket
    }

    /// Ends a hold.
    mutating func release(_ ticket: UInt64) { holds[ticket] = nil }

    private func checkInvariants() {
        #if DEBUG
        guard landed.count <= 64, trusted.count <= 64 else { return }
        assert(trusted.allSatisfy { landed.contains($0) }, "trusted bytes that have not landed")
        assert(landed.allSatisfy { $0.lowerBound % Block.size == 0 }, "landed bytes that are no prefix of their block")
        #endif
    }
}
