import Foundation

/// When things were used: by the calendar, but never twice the same, and never back in time by a little.
///
/// A clock that was wrong by years and is set right counts from then on; what was stamped meanwhile is moved back.
struct UseTimes: Sendable {
    private var last = Date.distantPast

    struct Use {
        var date: Date
        /// The calendar has jumped back: dates after this one are wrong.
        var isAfterJump: Bool
    }

    mutating func next(at now: Date) -> Use {
        let isAfterJump = now.addingTimeInterval(60) < last
        // A microsecond is what the catalog can tell apart; that between two uses is for what the used one is a part of.
        last = isAfterJump ? now : max(now, last.addingTimeInterval(0.000_002))
        return Use(date: last, isAfterJump: isAfterJump)
    }
}
