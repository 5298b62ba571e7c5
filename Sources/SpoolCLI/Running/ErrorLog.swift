import Logging

/// The log that `--verbose` asks for: a line on standard error for each message.
struct ErrorLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let facts = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        Output.remark("\(event.level): \(event.message)\(facts)")
    }
}
