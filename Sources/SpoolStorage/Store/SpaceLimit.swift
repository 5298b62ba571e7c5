import ByteRanges
import Foundation
import Synchronization

/// The maximum number of stored bytes: the capacity, or less if other programs need space on the volume.
///
/// This type sets the store's ``Ledger/limit``, but does not evict media.
final class SpaceLimit: Sendable {
    private let ledger: Ledger
    private let reporter: StoreReporter
    /// The free space to leave on the volume, in bytes; 0 if the volume is not watched.
    private let minimumFreeSpace: Int64
    /// The capacity in bytes; `nil` if it is unlimited.
    private let configured: Mutex<Int64?>
    /// The limit that the volume's free space allows, in bytes; `nil` until it has been measured.
    private let ofVolume = Mutex<Int64?>(nil)
    /// Whether the warning that nothing can be stored has been reported.
    private let isWarned = Atomic(false)

    init(capacity: Int64?, minimumFreeSpace: Int64, ledger: Ledger, reporter: StoreReporter) {
        self.configured = Mutex(capacity)
        self.minimumFreeSpace = minimumFreeSpace
        self.ledger = ledger
        self.reporter = reporter
    }

    /// The capacity in bytes; `nil` if it is unlimited.
    var capacity: Int64? { configured.withLock { $0 } }

    /// Whether the volume's free space limits the store.
    var isWatchingVolume: Bool { minimumFreeSpace > 0 }

    /// Changes the capacity.
    func setCapacity(_ limit: Int64?) {
        configured.withLock { $0 = limit }
        apply()
    }

    /// Adapts the limit to the free space of the volume.
    ///
    /// - Returns: The number of bytes that may remain stored; `nil` if nothing has to be evicted.
    func adapt(toFreeSpace free: Int64) -> Int64? {
        let used = ledger.used
        let size = max(0, used.addingReportingOverflow(free - minimumFreeSpace).partialValue)
        ofVolume.withLock { $0 = size }
        apply()
        if size == 0 { warnOnce(free) } else { isWarned.store(false, ordering: .relaxed) }
        return used > size ? size : nil
    }

    private func warnOnce(_ free: Int64) {
        guard !isWarned.exchange(true, ordering: .relaxed) else { return }
        let count = free.counted("byte")
        reporter.warn(
            "nothing can be stored: \(count) are free on the volume, but the minimum free space is "
                + minimumFreeSpace.counted("byte"))
    }

    private func apply() {
        ledger.limit = [configured.withLock { $0 }, ofVolume.withLock { $0 }].compactMap { $0 }.min()
    }
}

extension Store.Configuration {
    /// Returns the free space to leave on the volume of a directory, in bytes. The standard value is 500 MB or 5 % of
    /// the volume, whichever is less. If the volume is unknown, the result is 0.
    ///
    /// - Throws: ``CacheError`` with code `invalidArgument` if the value exceeds the size of the volume.
    func freeSpaceToLeave(in directory: CacheDirectory) throws -> Int64 {
        guard let minimumFreeSpace else {
            // The default must not make a cache unusable if the size of the volume can't be read.
            guard directory.access.isWritable, let space = try? directory.bytes.volumeSpace() else { return 0 }
            return min(500_000_000, space.size / 20)
        }
        guard minimumFreeSpace > 0 else { return 0 }
        let size = try directory.volumeSpace().size
        guard minimumFreeSpace < size else {
            throw CacheError(
                .invalidArgument,
                "a minimum free space of \(minimumFreeSpace.counted("byte")) is too large for a volume of "
                    + size.counted("byte"))
        }
        return minimumFreeSpace
    }
}

extension CacheCapacity {
    /// Returns the limit in bytes; `nil` if it is unlimited.
    ///
    /// - Throws: ``CacheError`` with code `storage` if the size of the volume can't be read, or `invalidArgument` if
    ///   there is no volume.
    func limit(in directory: CacheDirectory) throws -> Int64? {
        switch kind {
        case .bytes(let count): return min(count, NumberLimits.byteOffset)
        case .fraction(let fraction):
            let size = try directory.volumeSpace().size
            return Int64(exactly: (Double(size) * fraction).rounded(.down)) ?? size
        case .unlimited: return nil
        case .remembered: return try directory.catalog.settings.capacity()
        }
    }
}

/// The maximum age of unused media, measured by a wall clock that may change suddenly. This type does not evict media.
final class AgeLimit: Sendable {
    /// The maximum age; `nil` if only space limits the cache.
    let age: Duration?
    /// The time from which ages are measured; `nil` without a maximum age, and in a read-only store.
    private let start = Mutex<AgeStart?>(nil)
    private let catalog: Catalog
    private let clock: CacheClock

    init(_ age: Duration?, catalog: Catalog, clock: CacheClock) {
        self.age = age
        self.catalog = catalog
        self.clock = clock
    }

    /// Reads the time from which ages are measured, before the store records a use. The method blocks.
    func readStart() throws {
        guard let age else { return }
        let (record, newestUse) = (try catalog.settings.ageRecord(), try catalog.uses.newestUse())
        let (now, elapsed) = clock.times()
        let start = AgeStart(record, newestUse: newestUse, age: age, now: now, elapsed: elapsed)
        self.start.withLock { $0 = start }
        recordCalendar(isLook: true)
    }

    /// Checks whether the wall clock has changed suddenly, and records this before a use is recorded with the new time.
    /// The method blocks.
    ///
    /// - Parameter isLook: Whether to record the time even without a sudden change.
    func recordCalendar(isLook: Bool = false) {
        guard age != nil else { return }
        let (now, elapsed) = clock.times()
        let record = start.withLock { start -> AgeStart.Record? in
            guard let restarts = start?.pass(now: now, elapsed: elapsed), restarts || isLook else { return nil }
            return start?.record
        }
        guard let record else { return }
        // If the write fails, this process still has the record, and the next check writes it.
        try? catalog.settings.setAgeRecord(record)
    }

    /// The date before which the last use of media is too old; `nil` if no media can be too old.
    var oldest: Date? { start.withLock { $0?.oldest } }

    /// The interval between two checks for media that is too old; `nil` without a maximum age.
    ///
    /// Media stays at most a tenth longer than allowed, unless the maximum age is very short. The checks take almost no
    /// time.
    var checkInterval: Duration? { age.map { min(max($0 / 10, .seconds(1)), .seconds(3600)) } }
}
