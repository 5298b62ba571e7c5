import ByteRanges
import Foundation
import Synchronization

/// The file of one version, and the map of the blocks in it.
///
/// It is one of the three parts of a ``MediaFile``, together with ``EncryptedBlocks`` and ``BlockReclaimer``. Only this
/// part changes the map, reads checksums from the catalog, and ends claims of space. It does not decide which bytes are
/// read or written.
///
/// Methods that use the file block the calling thread. All other methods hold a lock for a few nanoseconds.
final class StoredBlocks: Sendable {
    private struct State: Sendable {
        var map: BlockMap
        /// Whether stored bytes count as claimed space.
        var isCounted = true
        /// The number of evicted or refused bytes whose space the disk has not freed. These bytes stay claimed until
        /// they are freed or the file is removed.
        var unfreed: Int64 = 0
        /// The blocks of an encrypted file that transfers are filling. Their bytes are only in memory.
        var filling: [Int64: FillingBlock] = [:]
        /// The ``OpenFile/number`` of the open file whose blocks were last checked.
        var checkedIn: UInt64 = 0
        /// The elapsed time after which blocks are checked again.
        var checkAgainAt = Duration.zero

        /// Removes the buffers of blocks that have been removed.
        mutating func removeUnstored() {
            filling = filling.filter { map.storedRanges.contains(Block.start(of: $0.key)) || $0.value.count == 0 }
        }
    }

    /// The time after which blocks are checked again, even if the file has stayed open.
    static let trustTime = Duration.seconds(86_400)

    let file: PooledFile
    private let state: ClassedMutex<State>
    /// Whether the trust in blocks expires, so that they have to be checked again. Blocks in memory can't change, and
    /// encrypted blocks are checked on every read.
    private let trustEnds: Bool
    private let elapsed: @Sendable () -> Duration
    /// A function that reads the catalog's records of the blocks with the given indices. It blocks the calling thread.
    private let storedSeals: @Sendable (Range<Int64>) throws -> [BlockRecord]
    /// A function that ends the claims of bytes that are no longer stored, or whose space the disk has freed. It may be
    /// called while the map's lock is held.
    private let releaseClaim: @Sendable (Int64) -> Void

    init(
        file: PooledFile, map: BlockMap, trustEnds: Bool, elapsed: @escaping @Sendable () -> Duration,
        storedSeals: @escaping @Sendable (Range<Int64>) throws -> [BlockRecord],
        releaseClaim: @escaping @Sendable (Int64) -> Void
    ) {
        self.file = file
        self.trustEnds = trustEnds
        self.elapsed = elapsed
        state = ClassedMutex(State(map: map), .neverWaits)
        self.storedSeals = storedSeals
        self.releaseClaim = releaseClaim
    }

    // MARK: - The map

    /// Reads or changes the map, and ends the claims of bytes that are no longer stored. Only this method and
    /// ``evict(_:keeping:)`` remove bytes from the map.
    func withMap<R, Failure: Error>(_ body: (inout BlockMap) throws(Failure) -> sending R) throws(Failure) -> sending R
    {
        try state.withLock { state throws(Failure) in
            let (before, removals) = (state.map.storedRanges.byteCount, state.map.removals)
            defer {
                if !state.filling.isEmpty, state.map.removals != removals { state.removeUnstored() }
                let gone = before - state.map.storedRanges.byteCount
                if gone > 0, state.isCounted { releaseClaim(gone) }
            }
            return try body(&state.map)
        }
    }

    /// Reads the map, or adds to it, together with the blocks of an encrypted file that are being filled.
    func withFilling<R, Failure: Error>(
        _ body: (inout BlockMap, inout [Int64: FillingBlock]) throws(Failure) -> sending R
    ) throws(Failure) -> sending R {
        try state.withLock { state throws(Failure) in try body(&state.map, &state.filling) }
    }

    /// Records in the map that bytes were written to the file.
    ///
    /// - Parameters:
    ///   - stored: The number of stored bytes that precede the range in its first block.
    ///   - records: The records of the blocks that the range completes.
    /// - Returns: The number of newly claimed bytes.
    /// - Throws: ``MissingBytes`` if a reader has found the start of the first block damaged in the meantime.
    func add(_ range: Range<Int64>, after stored: Int, completing records: [BlockRecord]) throws -> Int64 {
        try state.withLock { state in
            guard stored == 0 || state.map.storedRanges.contains(range.lowerBound - 1) else {
                let first = Block.index(of: range.lowerBound)
                throw MissingBytes(range: Block.start(of: first) + state.map.storedCount(of: first)..<range.lowerBound)
            }
            state.map.store(range, completing: records)
            for record in records { state.filling[record.index] = nil }
            return state.isCounted ? range.upperBound - range.lowerBound : 0
        }
    }

    /// Discards the blocks that `range` touches.
    ///
    /// - Returns: The discarded blocks.
    func invalidate(_ range: Range<Int64>) -> [Range<Int64>] {
        let blocks = Self.wholeBlocks(range)
        withMap { $0.invalidate(blocks) }
        return [blocks]
    }

    /// Discards all blocks, because the file no longer exists.
    ///
    /// - Returns: The discarded blocks.
    func invalidateAll() -> [Range<Int64>] { withMap { $0.invalidateAll() }.map(Self.wholeBlocks) }

    /// Returns the range of checked bytes that starts at `offset`, and the number of removals so far. The result is
    /// `nil` if the byte at `offset` has not been checked.
    func trusted(at offset: Int64) -> (range: Range<Int64>, removals: UInt64)? {
        state.withLock { state in state.map.trustedPrefix(at: offset).map { ($0, state.map.removals) } }
    }

    /// Returns the same as ``trusted(at:)``, unless the trust has expired.
    ///
    /// - Returns: `nil` if the bytes were checked before `open` was opened, or more than ``trustTime`` ago.
    func trusted(at offset: Int64, in open: OpenFile) -> (range: Range<Int64>, removals: UInt64)? {
        let now = trustEnds ? elapsed() : .zero
        return state.withLock { state in
            guard isTrusted(state, open, now) else { return nil }
            return state.map.trustedPrefix(at: offset).map { ($0, state.map.removals) }
        }
    }

    private func isTrusted(_ state: borrowing State, _ open: OpenFile, _ now: Duration) -> Bool {
        !trustEnds || state.checkedIn == open.number && now < state.checkAgainAt
    }

    /// Expires the trust in the blocks if they were checked before the file was reopened, or too long ago.
    ///
    /// The system may lose written bytes without an error, or report the error only when the file is closed. The disk,
    /// or another program, may change bytes later.
    func recordOpened(_ open: OpenFile) {
        let now = trustEnds ? elapsed() : .zero
        state.withLock { state in
            guard !isTrusted(state, open, now) else { return }
            (state.checkedIn, state.checkAgainAt) = (open.number, now + Self.trustTime)
            state.map.expireTrust()
        }
    }

    /// Returns whether the number of removals is still `removals`.
    func isUnchanged(since removals: UInt64) -> Bool { state.withLock { $0.map.removals == removals } }

    /// Protects `range` from eviction if all of it has been checked.
    ///
    /// - Returns: The ticket for ``BlockMap/endHold(_:)``; `nil` if some of the bytes have to be checked first.
    func holdTrusted(_ range: Range<Int64>, in open: OpenFile) -> UInt64? {
        let now = trustEnds ? elapsed() : .zero
        return state.withLock { state in
            guard isTrusted(state, open, now), let trusted = state.map.trustedPrefix(at: range.lowerBound),
                trusted.upperBound >= range.upperBound
            else { return nil }
            return state.map.hold(range)
        }
    }

    // MARK: - Claims

    /// The number of bytes that the file claims: stored bytes, and evicted or refused bytes whose space is not freed
    /// yet.
    var claimedByteCount: Int64 { state.withLock { $0.map.storedRanges.byteCount + $0.unfreed } }

    /// Whether evicted blocks or refused bytes still use space on disk.
    var holdsUnfreedBytes: Bool { state.withLock { $0.unfreed > 0 } }

    /// Ends all claims, because the version is no longer in the cache.
    ///
    /// - Returns: The number of bytes that had been claimed; 0 if the claims had already ended.
    func endCounting() -> Int64 {
        state.withLock { state in
            defer { state.isCounted = false }
            return state.isCounted ? state.map.storedRanges.byteCount + state.unfreed : 0
        }
    }

    /// Removes the blocks to evict from the map.
    ///
    /// - Returns: The stored ranges of the blocks, and the claim that the caller ends with ``recordFreed(_:of:)``.
    func evict(
        _ range: Range<Int64>, keeping filling: some Collection<Int64>
    ) -> (ranges: [Range<Int64>], claim: Int64) {
        let filling = Array(filling)
        return state.withLock { state in
            let before = state.map.storedRanges.byteCount
            let ranges = state.map.evict(range, keeping: filling)
            return (ranges, state.isCounted ? before - state.map.storedRanges.byteCount : 0)
        }
    }

    /// Claims bytes that are not stored, but that the disk may have written.
    ///
    /// - Returns: The number of bytes that are claimed.
    func recordUnfreed(_ count: Int64) -> Int64 {
        state.withLock { state in
            // A file that is no longer in the cache has no claims.
            guard state.isCounted else { return 0 }
            state.unfreed += count
            return count
        }
    }

    /// Ends the part of a claim whose space the disk has freed. The rest stays claimed.
    func recordFreed(_ freed: Int64, of claim: Int64) {
        let gone = state.withLock { state in
            // A file that is no longer in the cache has no claims.
            guard state.isCounted else { return claim }
            state.unfreed += claim - freed
            return freed
        }
        releaseClaim(gone)
    }

    /// Ends the claims of all bytes that are not stored, after the disk has freed their space.
    func recordAllFreed() {
        let gone = state.withLock { state in
            defer { state.unfreed = 0 }
            return state.isCounted ? state.unfreed : 0
        }
        releaseClaim(gone)
    }

    // MARK: - The file

    /// Returns the open file, for reading `range`. If the file no longer exists, discards all blocks.
    func openFile(for range: Range<Int64>) throws -> OpenFile {
        guard let open = try file.opened() else { throw MissingBytes(invalidated: invalidateAll(), range: range) }
        recordOpened(open)
        return open
    }

    /// Returns the open file if it still reaches the end of `range`. Otherwise, discards the missing end and throws an
    /// error, because a sender that does not examine the bytes would wait for the end.
    func openFile(holding range: Range<Int64>) throws -> OpenFile {
        let open = try openFile(for: range)
        let size = try open.file.size()
        guard size < range.upperBound else { return open }
        let missing = max(size, range.lowerBound)..<range.upperBound
        throw MissingBytes(invalidated: invalidate(missing), range: missing)
    }

    /// Reads from the file. If it can't be read, the blocks that `range` touches are discarded.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, of range: Range<Int64>) throws -> Int {
        let open = try openFile(for: range)
        do throws(CacheError) {
            return try open.file.read(into: buffer, at: offset)
        } catch {
            throw MissingBytes(invalidated: invalidate(range), range: range, cause: error)
        }
    }

    /// Returns the newest checksum of `block`, which is the stored part of a block. Returns `nil` if there is none, or
    /// if it covers different bytes.
    func seal(of block: Range<Int64>) throws -> BlockRecord? {
        let index = Block.index(of: block.lowerBound)
        let (known, removals) = withMap { ($0.seal(of: index), $0.removals) }
        if let known { return known.range == block ? known : nil }
        // Records are read in groups, because players usually read the next blocks soon afterwards.
        let group: Int64 = 64
        let start = index / group * group
        let records = try storedSeals(start..<start + group)
        withMap { $0.add(stored: records, since: removals) }
        return records.first { $0.index == index && $0.range == block }
    }

    /// Returns the catalog's current record of a block; `nil` if there is none.
    func storedSeal(at index: Int64) throws -> BlockRecord? {
        try storedSeals(index..<index + 1).first { $0.index == index && $0.isPlausible }
    }

    /// Returns the blocks that `range` touches, as one range.
    static func wholeBlocks(_ range: Range<Int64>) -> Range<Int64> {
        Block.roundDown(range.lowerBound)..<Block.roundUp(range.upperBound)
    }
}
