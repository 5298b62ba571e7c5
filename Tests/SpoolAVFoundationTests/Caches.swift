import Foundation
import Logging
import SpoolAVFoundation
import SpoolStorage
import SpoolTesting

@testable import Spool

/// A directory for a cache. The directory is removed when its last reference is released.
final class ScratchFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory
            .appendingPathComponent("spool-avfoundation-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Opens a cache in the directory.
    func cache(
        _ upstream: any Upstream, _ configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) async throws -> MediaCache {
        try await MediaCache.opened(directory: url, upstream: upstream, configuration: Self.configuration(configure))
    }

    /// Opens a cache in the directory, with the default configuration of the tests and a manual clock.
    func cache(_ upstream: any Upstream, _ clock: ManualClock) async throws -> MediaCache {
        try await MediaCache.opened(
            directory: url, upstream: upstream, configuration: Self.configuration { _ in },
            fileSystem: SystemFileSystem(), clock: CacheClock(clock: clock))
    }

    private static func configuration(
        _ configure: (inout MediaCache.Configuration) -> Void
    ) -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        configuration.retry.maximumRetryCount = 0
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        return configuration
    }
}

/// Configures a cache to cancel requests that no reader needs immediately, so that tests do not wait.
func cancellingImmediately(_ configuration: inout MediaCache.Configuration) {
    configuration.readAhead.cancellationDelay = .zero
    configuration.readAhead.drainTimeout = .zero
}

/// Returns the URL of a resource at a ``MemoryUpstream``, which does not open connections.
func address(_ name: String = "song.mp3") -> URL {
    guard let url = URL(string: "https://origin.test/\(name)") else { preconditionFailure("\(name) is not a path") }
    return url
}

extension MediaCache {
    /// Waits until the unused resources are closed and the received bytes are recorded in the catalog.
    func waitUntilIdle() async {
        await resources.waitUntilClosed()
        await context.opening.openedStore?.waitUntilIdle()
    }
}

extension MediaResource {
    /// Waits until no transfer is in flight.
    func waitUntilIdle() async { await resource?.scheduler.waitUntilIdle() }
}
