/// A Linux replacement for `Logger` in Apple's OSLog, so that a second module contains a type with this name.
public struct Logger {
    /// The identifier of the app that logs.
    public let subsystem: String
    /// The part of the app that logs.
    public let category: String

    /// Creates a logger that discards its messages.
    public init(subsystem: String, category: String) {
        self.subsystem = subsystem
        self.category = category
    }
}
