import ByteRanges
import Synchronization

/// The bytes of a version that are only in memory, because the disk does not take them.
///
/// They have no checksums and no record, and are evicted as soon as no reader is near them.
final class GenerationMemory: Sendable {
    /// The bytes.
    let file: MediaFile
    private let pages = MemoryFile()
    /// The account of such memory, of the whole cache.
    private let ledger: Ledger
    /// Storing and evicting take turns, so that each page is counted once.
    private let turn = Mutex(())
    private let isUsed = Atomic(false)

    init(length: Int64?, ledger: Ledger) {
        file = MediaFile(file: PooledFile(pages), sealer: nil, length: length)
        self.ledger = ledger
    }

    /// Whether there may be bytes.
    var isInUse: Bool { isUsed.load(ordering: .acquiring) }

    /// The ranges that are in memory.
    var landed: ByteRangeSet { isInUse ? file.landed : ByteRangeSet() }

    /// The memory in use, in bytes.
    var byteCount: Int64 { pages.byteCount }

    /// The memory that `range` needs in addition, in bytes.
    func missingByteCount(in range: Range<Int64>) -> Int64 {
        Int64(pages.missingPageCount(in: range)) * MemoryFile.pageSize
    }

    /// Reserves memory, as far as the limit allows.
    func reserve(_ count: Int64) -> ReservationResult { ledger.reserve(count) }

    /// Reserves memory, also beyond the limit.
    func reserveRegardless(_ count: Int64) -> Reservation { ledger.reserveRegardless(count) }

    /// Stores bytes.
    ///
    /// - Parameters:
    ///   - prefix: The bytes before them in their block, which are on disk. A block is in one place.
    ///   - reservation: The memory that is reserved for them.
    /// - Returns: `false`, and nothing is stored, if more memory would be needed. A page that was there when it was reserved
    ///   may have been released since.
    func land(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64, after prefix: [UInt8], _ reservation: inout Reservation
    ) throws -> Bool {
        try turn.withLock { _ in
            let before = pages.byteCount
            let needed = missingByteCount(in: offset..<offset + Int64(bytes.count))
            guard needed <= reservation.remaining else { return false }
            isUsed.store(true, ordering: .releasing)
            defer { reservation.land(pages.byteCount - before) }
            if !prefix.isEmpty { try prefix.withUnsafeBytes { try file.land($0, at: offset - Int64(prefix.count)) } }
            try file.land(bytes, at: offset)
            return true
        }
    }

    /// Evicts ranges.
    func evict(_ ranges: [Range<Int64>]) {
        turn.withLock { _ in
            let before = pages.byteCount
            // Memory frees everything.
            for range in ranges { _ = file.evict(range) }
            ledger.giveBack(before - pages.byteCount)
            if pages.byteCount == 0 { isUsed.store(false, ordering: .releasing) }
        }
    }

    /// Evicts everything, also of a block whose transfer has not ended.
    func evictAll() {
        file.endAllLanding()
        if let bounds = file.landed.bounds { evict([bounds]) }
    }
}
