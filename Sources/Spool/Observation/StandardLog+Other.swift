#if !canImport(os)
package import Logging

extension Logger {
    /// Returns the logger of a new configuration, which writes to the handler that the app bootstrapped. Without one,
    /// it writes to standard error.
    package static func standard(_ label: String) -> Logger { Logger(label: label) }
}
#endif
