#if canImport(os)
package import Logging
import os

extension Logging.Logger {
    /// Returns the logger of a new configuration, which writes to the system's log. See ``SystemLog``.
    package static func standard(_ label: String) -> Logging.Logger {
        Logging.Logger(label: label) { SystemLog(category: $0) }
    }
}

/// A handler that writes to the unified log, which Console and Xcode display. The subsystem is `spool`, and the
/// category is the logger's label.
///
/// Messages are public, because they do not contain queries or credentials. Metadata, such as the URL of the media, is
/// private, so the system redacts it outside of debugging. Source: `os.Logger`, `OSLogPrivacy`.
private struct SystemLog: LogHandler {
    var metadata: Logging.Logger.Metadata = [:]
    var logLevel = Logging.Logger.Level.info
    private let log: os.Logger

    init(category: String) { log = os.Logger(subsystem: "spool", category: category) }

    subscript(metadataKey key: String) -> Logging.Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        log.log(level: Self.type(of: event.level), "\(event.message.description, privacy: .public)\(details)")
    }

    private static func type(of level: Logging.Logger.Level) -> OSLogType {
        switch level {
        case .trace, .debug: .debug
        case .info: .info
        case .notice, .warning: .default
        case .error: .error
        case .critical: .fault
        }
    }
}
#endif
