import Logging
import SpoolAVFoundation

// A piece of docs/apple.md, in a file of its own: its imports are those that the document names.

private func configuration() -> MediaCache.Configuration {
    var configuration = MediaCache.Configuration()
    configuration.logger = Logger(label: "org.example.player.cache")
    configuration.logger.logLevel = .debug
    return configuration
}
