import Foundation

/// Where, and when, a play of a resource has stopped.
struct PlayStop: Sendable {
    /// The offset of the next byte; nil: at the resource's end.
    var offset: Int64?
    /// Whether it is played once, and was heard to its end.
    var isSpent: Bool
    var date: Date
}
