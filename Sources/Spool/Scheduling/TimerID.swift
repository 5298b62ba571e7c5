/// Names one timer that the scheduler has asked for; one that is out of date is ignored when it fires.
package struct TimerID: Hashable, Comparable, Sendable {
    let number: Int
    package static func < (a: TimerID, b: TimerID) -> Bool { a.number < b.number }
}
