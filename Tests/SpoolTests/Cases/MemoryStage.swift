import Foundation
import HTTPTypes
import Logging
import SpoolTesting
import Synchronization

@testable import Spool

/// A cache whose origin is in memory, with clocks and a date that only the test changes.
final class MemoryStage: Sendable {
    let origin: ScriptedUpstream
    /// The clock of the cache, for back-off, delays and flushes.
    let clock = ManualClock()
    /// The clock of the origin, for slow responses.
    let originClock = ManualClock()
    /// The current date for the cache.
    let date = Mutex(Date())
    private let disk: any FileSystem
    private let scratch: ScratchDirectory
    private let configuration: MediaCache.Configuration
    private let wrap: @Sendable (any Upstream) -> any Upstream
    private let lives = Mutex(0)

    /// - Parameter wrap: A function that wraps the transport to the origin.
    init(
        _ resources: [String: OriginResource], freshness: FreshnessPolicy = .immutable,
        disk: any FileSystem = SystemFileSystem(),
        configure: (inout MediaCache.Configuration) -> Void = { _ in },
        wrap: @escaping @Sendable (any Upstream) -> any Upstream = { $0 }
    ) throws {
        origin = ScriptedUpstream(resources, clock: originClock)
        scratch = try ScratchDirectory()
        self.disk = disk
        self.wrap = wrap
        var configuration = MediaCache.Configuration()
        configuration.freshness = freshness
        configuration.logger = Logger(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        self.configuration = configuration
    }

    /// The cache's directory.
    var directory: String { scratch.file("cache-\(lives.withLock { $0 })") }

    func url(_ path: String = "/a") -> URL {
        guard let url = URL(string: "http://origin.test\(path)") else { preconditionFailure("\(path) is not a path") }
        return url
    }

    func file(_ name: String) -> String { scratch.file(name) }

    /// Opens a cache in the stage's directory. The caller must close it before opening another one.
    func open(_ configure: (inout MediaCache.Configuration) -> Void = { _ in }) async throws -> MediaCache {
        var configuration = configuration
        configure(&configuration)
        return try await makeCache(
            directory: directory, upstream: wrap(UndatedUpstream(base: origin)), configuration: configuration,
            fileSystem: disk, clock: CacheClock(clock: clock, now: { [self] in date.withLock { $0 } }))
    }

    /// Runs `body` with an open cache, waits until the cache is idle, checks its byte counts, and closes it.
    ///
    /// - Parameter isFlowing: Whether the clock advances to each deadline that a task waits for while `body` runs.
    func session<R>(
        isFlowing: Bool = true, _ configure: (inout MediaCache.Configuration) -> Void = { _ in },
        _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        let cache = try await open(configure)
        do {
            let result = isFlowing ? try await flowing { try await body(cache) } : try await body(cache)
            try await flowing {
                await cache.waitUntilIdle()
                try await cache.checkLedger()
                await cache.close()
            }
            return result
        } catch {
            origin.release()
            try await flowing { await cache.close() }
            throw error
        }
    }

    /// Runs a session that ends like a killed process. The next session starts with a copy of the files that it left.
    func sessionThatIsKilled(_ body: (MediaCache) async throws -> Void) async throws {
        try await session { cache in
            try await body(cache)
            await cache.waitUntilIdle()
            let previous = directory
            lives.withLock { $0 += 1 }
            try FileManager.default.copyItem(atPath: previous, toPath: directory)
        }
    }

    /// Runs `body`, and advances a clock to each deadline for which a task waits. The default is the cache's clock.
    @discardableResult
    func flowing<R>(_ clock: ManualClock? = nil, _ body: () async throws -> R) async throws -> R {
        try await (clock ?? self.clock).flowing(body)
    }

    /// Checks that all bytes of `pattern` are stored, while the origin is unreachable.
    func checkComplete(_ pattern: PatternBytes, _ path: String = "/a") async throws {
        origin.setReachable(false)
        try await session { cache in
            try await cache.media(for: url(path)).check(.all, pattern, covers: 0..<pattern.length)
        }
        origin.setReachable(true)
    }

    /// Advances the date.
    func pass(_ seconds: TimeInterval) { date.withLock { $0 += seconds } }
}

/// A transport that removes the `Date` field, so that the age of responses depends on the cache's date.
private struct UndatedUpstream: Upstream {
    let base: ScriptedUpstream

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        var response = try await base.open(request)
        response.head.headerFields[.date] = nil
        return response
    }
}

extension MediaResource {
    /// Reads `range` to its end, and returns its bytes.
    func bytes(_ range: MediaRange = .all) async throws -> Data {
        var data = Data()
        for try await chunk in reader(range) { data += chunk.data }
        return data
    }
}

extension TimeInterval {
    static let years: TimeInterval = 365 * 86400
}
