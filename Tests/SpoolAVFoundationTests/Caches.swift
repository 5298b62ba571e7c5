import Foundation
import Logging
import SpoolAVFoundation
import SpoolStorage
import SpoolTesting

@testable import Spool

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
        try await MediaCache.opened(directory: url, upstream: upstream, configuration: Self.configuration(configure))
    }

    /// Opens the cache in the folder, with a configuration as it comes, on a clock of the test's.
    func cache(_ upstream: any Upstream, _ clock: ManualClock) async throws -> MediaCache {
        try await MediaCache.opened(
            directory: url, upstream: upstream, configuration: Self.configuration { _ in },
            fileSystem: SystemFileSystem(), clock: CacheClock(clock: clock))
    }

    private static func configuration(
        _ configure: (inout MediaCache.Configuration) -> Void
    ) -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        configuration.retry.retries = 0
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        return configuration
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

extension MediaCache {
    /// Waits until what nobody holds has closed and all that has landed is written down.
    func waitUntilIdle() async {
        await resources.waitUntilClosed()
        await context.opening.openedStore?.waitUntilIdle()
    }
}

extension MediaResource {
    /// Waits until no transfer is in flight.
    func waitUntilIdle() async { await resource?.scheduler.waitUntilIdle() }
}
