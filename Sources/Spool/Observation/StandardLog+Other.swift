#if !canImport(os)
package import Logging

extension Logger {
    /// Returns the default logger of a configuration. It writes to the handler that the app passed to
    /// `LoggingSystem.bootstrap`, or to standard error.
    package static func standard(_ label: String) -> Logger { Logger(label: label) }
}
#endif
