import Logging
import SpoolAVFoundation

// An example from docs/guides/monitor.md. It is in a separate file that contains only the imports shown in the
// document.

private func configuration() -> MediaCache.Configuration {
    var configuration = MediaCache.Configuration()
    configuration.logger = Logger(label: "org.example.player.cache")
    configuration.logger.logLevel = .debug
    return configuration
}
