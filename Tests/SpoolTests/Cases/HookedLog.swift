import Foundation
import Logging
import Synchronization

/// A log handler that passes each message to a test, on the thread that logs the message.
struct HookedLog: LogHandler {
    let hook: @Sendable (String) -> Void
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(_ hook: @escaping @Sendable (String) -> Void) { self.hook = hook }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { hook("\(event.message)") }
}
