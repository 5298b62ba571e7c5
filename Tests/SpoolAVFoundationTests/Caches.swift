import Foundation
import Logging
import Spool
import SpoolAVFoundation

/// A cache in a folder of its own, which goes when the last reference does.
final class ScratchFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory
            .appendingPathComponent("spool-avfoundation-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Opens the cache in the folder.
    func cache(
        _ upstream: any Upstream, _ configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) async throws -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.retry.retries = 0
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        return try await MediaCache(directory: url, upstream: upstream, configuration: configuration)
    }
}

/// What nobody wants any more is cut at once, so that a test needs no time.
func cuttingAtOnce(_ configuration: inout MediaCache.Configuration) {
    configuration.readAhead.cancellationDelay = .zero
    configuration.readAhead.drainTime = .zero
}

/// A URL that nobody asks for, since a ``MemoryUpstream`` responds.
func address(_ name: String = "song.mp3") -> URL {
    guard let url = URL(string: "https://origin.test/\(name)") else { preconditionFailure("\(name) is no path") }
    return url
}
