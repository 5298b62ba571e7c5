import Foundation
import Synchronization

/// The maximum age of unused media, by a wall clock that may be set. It evicts nothing.
final class AgeLimit: Sendable {
    /// The maximum age; `nil` if only space limits the cache.
    let age: Duration?
    /// The time from which ages count; `nil` without a maximum age, and in a store that is only read.
    private let start = Mutex<AgeStart?>(nil)
    private let catalog: Catalog
    private let clock: CacheClock

    init(_ age: Duration?, catalog: Catalog, clock: CacheClock) {
        self.age = age
        self.catalog = catalog
        self.clock = clock
    }

    /// Reads the time from which ages count, before this opening records a use. This blocks.
    func readStart() throws {
        guard let age else { return }
        let start = AgeStart(
            try catalog.settings.ageRecord(), newestUse: try catalog.uses.newestUse(), age: age, now: clock.now(),
            elapsed: clock.elapsed())
        self.start.withLock { $0 = start }
        noteCalendar(isLook: true)
    }

    /// Checks whether the wall clock has changed suddenly, and records that before a use is recorded with the new time.
    /// This blocks.
    ///
    /// - Parameter isLook: Whether the time is recorded even without a sudden change.
    func noteCalendar(isLook: Bool = false) {
        guard age != nil else { return }
        let (now, elapsed) = (clock.now(), clock.elapsed())
        let record = start.withLock { start -> AgeStart.Record? in
            guard let restarts = start?.pass(now: now, elapsed: elapsed), restarts || isLook else { return nil }
            return start?.record
        }
        guard let record else { return }
        // If it fails, this process has the record, and the next check writes it.
        try? catalog.settings.setAgeRecord(record)
    }

    /// The earliest last use of media that is not too old yet; `nil` if no media can be too old.
    var oldest: Date? { start.withLock { $0?.oldest } }

    /// The interval between two checks for media that is too old; `nil` without a maximum age.
    ///
    /// Little is stored for a tenth longer than allowed, and checking costs nothing.
    var checkInterval: Duration? { age.map { min(max($0 / 10, .seconds(1)), .seconds(3600)) } }
}
