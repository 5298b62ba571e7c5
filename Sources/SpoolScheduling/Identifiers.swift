/// A number that identifies a reader of one open resource. A reader that is opened later has a greater number.
package struct ReaderID: Hashable, Comparable, Sendable {
    package let number: Int
    package static func < (a: ReaderID, b: ReaderID) -> Bool { a.number < b.number }
}

/// A number that identifies a transfer of one open resource. A transfer that starts later has a greater number.
package struct TransferID: Hashable, Comparable, Sendable {
    package let number: Int
    package static func < (a: TransferID, b: TransferID) -> Bool { a.number < b.number }
}

/// A number that identifies a timer that the scheduler has requested. The scheduler ignores a timer that it no longer
/// needs.
package struct TimerID: Hashable, Comparable, Sendable {
    package let number: Int
    package static func < (a: TimerID, b: TimerID) -> Bool { a.number < b.number }
}

/// A number that identifies the reason why bytes cannot be fetched. The scheduler stores the error itself alongside its
/// plan.
package struct FailureID: Hashable, Comparable, Sendable {
    package let number: Int
    package static func < (a: FailureID, b: FailureID) -> Bool { a.number < b.number }
}
