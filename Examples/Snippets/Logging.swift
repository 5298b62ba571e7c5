import Logging
import SpoolAVFoundation

// An example from docs/guides/monitor.md. It is in a separate file, which has only the imports that the document names.

private func configuration() -> MediaCache.Configuration {
    var configuration = MediaCache.Configuration()
    configuration.logger = Logger(label: "org.example.player.cache")
    configuration.logger.logLevel = .debug
    return configuration
}
