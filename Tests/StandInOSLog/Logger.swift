/// A Linux replacement for the type of the same name in Apple's OSLog, so that another module has a `Logger`.
public struct Logger {
    /// The app that logs.
    public let subsystem: String
    /// The part of the app.
    public let category: String

    /// Creates a logger that writes nothing.
    public init(subsystem: String, category: String) {
        self.subsystem = subsystem
        self.category = category
    }
}
