import Foundation
import HTTPTypes
import Logging
import SpoolTesting
import Synchronization

@testable import Spool

/// A cache before an origin in memory, on a clock and a calendar that stand still unless the test moves them.
final class MemoryStage: Sendable {
    let origin: ScriptedUpstream
    /// The cache's time: back-off, delays, rounds of writing down.
    let clock = ManualClock()
    /// The origin's time: bytes that come bit by bit.
    let originClock = ManualClock()
    /// What the cache takes for the date.
    let date = Mutex(Date())
    private let disk: any FileSystem
    private let scratch: ScratchDirectory
    private let configuration: MediaCache.Configuration
    private let lives = Mutex(0)

    init(
        _ resources: [String: OriginResource], freshness: FreshnessPolicy = .immutable,
        disk: any FileSystem = SystemFileSystem(),
        configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) throws {
        origin = ScriptedUpstream(resources, clock: originClock)
        scratch = try ScratchDirectory()
        self.disk = disk
        var configuration = MediaCache.Configuration()
        configuration.freshness = freshness
        configuration.logger = Logger(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        self.configuration = configuration
    }

    /// The folder of the cache.
    var directory: String { scratch.file("cache-\(lives.withLock { $0 })") }

    func url(_ path: String = "/a") -> URL {
        guard let url = URL(string: "http://origin.test\(path)") else { preconditionFailure("\(path) is no path") }
        return url
    }

    func file(_ name: String) -> String { scratch.file(name) }

    /// A cache in the stage's folder; closed by the caller, before another one is opened.
    func open(_ configure: (inout MediaCache.Configuration) -> Void = { _ in }) async throws -> MediaCache {
        var configuration = configuration
        configure(&configuration)
        return try await makeCache(
            directory: directory, upstream: UndatedUpstream(base: origin), configuration: configuration,
            fileSystem: disk, clock: CacheClock(clock: clock, now: { [self] in date.withLock { $0 } }))
    }

    /// One life of the cache, at whose end nothing moves and every byte is accounted for.
    ///
    /// - Parameter isFlowing: Whether time goes by while `body` runs, as fast as somebody waits for it.
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

    /// One life of the cache that ends as by a kill: the next one begins with what was on disk at its end.
    func sessionThatIsKilled(_ body: (MediaCache) async throws -> Void) async throws {
        try await session { cache in
            try await body(cache)
            await cache.waitUntilIdle()
            let former = directory
            lives.withLock { $0 += 1 }
            try FileManager.default.copyItem(atPath: former, toPath: directory)
        }
    }

    /// Lets the cache's time, or the origin's, go by as fast as somebody waits for it, while `body` runs.
    @discardableResult
    func flowing<R>(_ clock: ManualClock? = nil, _ body: () async throws -> R) async throws -> R {
        try await (clock ?? self.clock).flowing(body)
    }

    /// Checks that everything of `pattern` is there without the origin.
    func checkComplete(_ pattern: PatternBytes, _ path: String = "/a") async throws {
        origin.setReachable(false)
        try await session { cache in
            try await cache.media(for: url(path)).check(.all, pattern, covers: 0..<pattern.length)
        }
        origin.setReachable(true)
    }

    /// Moves the calendar.
    func pass(_ seconds: TimeInterval) { date.withLock { $0 += seconds } }
}

/// Leaves the `Date` field out, so that responses are as old as the cache's calendar has them.
private struct UndatedUpstream: Upstream {
    let base: ScriptedUpstream

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        var response = try await base.open(request)
        response.head.headerFields[.date] = nil
        return response
    }
}

extension MediaResource {
    /// Reads `range` to its end, and hands back its bytes.
    func bytes(_ range: MediaRange = .all) async throws -> Data {
        var data = Data()
        for try await chunk in reader(range) { data += chunk.data }
        return data
    }
}

extension TimeInterval {
    static let years: TimeInterval = 365 * 86400
}
