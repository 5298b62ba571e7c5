import ByteRanges
import Foundation
import Logging
import SpoolHTTP
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// A cache with a real origin on this machine, and clocks that only the test advances.
final class CaseStage: Sendable {
    let origin: OriginServer
    /// The clock of the cache, for back-off, grace periods and flushes.
    let clock = ManualClock()
    /// The clock of the network, for timeouts.
    let networkClock = ManualClock()
    let scratch: ScratchDirectory
    let upstream: any Upstream
    private let configuration: MediaCache.Configuration

    init(
        _ resources: [String: OriginResource], freshness: FreshnessPolicy,
        configure: (inout MediaCache.Configuration) -> Void
    ) async throws {
        origin = try await OriginServer.start(resources)
        scratch = try ScratchDirectory()
        var settings = HTTPUpstream.Configuration()
        settings.clock = networkClock
        upstream = AsyncHTTPClientUpstream(settings)
        var configuration = MediaCache.Configuration()
        configuration.freshness = freshness
        configuration.logger = Logger(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        self.configuration = configuration
    }

    /// Opens a cache in the stage's directory. The caller must close it before opening another one.
    func open() async throws -> MediaCache {
        try await MediaCache.opened(
            directory: URL(fileURLWithPath: scratch.file("cache")), upstream: upstream, configuration: configuration,
            fileSystem: SystemFileSystem(), clock: CacheClock(clock: clock))
    }

    /// Runs `body` with an open cache, and closes the cache. The next session uses the stored bytes.
    func session<R>(_ body: (MediaCache) async throws -> R) async throws -> R {
        let cache = try await open()
        do {
            let result = try await body(cache)
            await cache.waitUntilIdle()
            try await cache.checkLedger()
            await cache.close()
            return result
        } catch {
            await cache.close()
            throw error
        }
    }

    func url(_ path: String = "/a") -> URL { origin.url(path) }

    /// Returns the paths of the stage's files that this process has open. On systems other than Linux, the result is
    /// empty.
    func openFiles() throws -> [String] {
        #if os(Linux)
        let table = "/proc/self/fd"
        return try FileManager.default.contentsOfDirectory(atPath: table).compactMap { name in
            // A descriptor that was closed after the listing has no target.
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: table + "/" + name)
            return target.flatMap { $0.hasPrefix(scratch.path) ? $0 : nil }
        }
        #else
        return []
        #endif
    }

    /// Runs `body`, and advances the clock to each deadline that a task waits for.
    func flowing<R>(_ body: () async throws -> R) async throws -> R { try await clock.flowing(body) }

    /// Waits until all responses have ended. Checks that `count` bytes were sent, and at most `spare` bytes more than
    /// once.
    func expectSent(
        _ count: Int64, spare: Int64 = 0, _ path: String = "/a", at location: SourceLocation = #_sourceLocation
    ) async throws {
        try await origin.log.waitUntilIdle()
        #expect(origin.log.bytesSent(path) >= count, sourceLocation: location)
        #expect(origin.log.bytesSent(path) <= count + spare, sourceLocation: location)
        #expect(origin.log.distinctBytesSent(path) == count, sourceLocation: location)
    }
}

/// Runs a case on a new stage.
func onStage(
    _ resources: [String: OriginResource], freshness: FreshnessPolicy = .immutable,
    configure: (inout MediaCache.Configuration) -> Void = { _ in }, _ body: (CaseStage) async throws -> Void
) async throws {
    let stage = try await CaseStage(resources, freshness: freshness, configure: configure)
    do {
        try await body(stage)
        await stage.origin.stop()
    } catch {
        await stage.origin.stop()
        throw error
    }
}

extension MediaCache {
    /// Waits until unused resources are closed and all received bytes are recorded.
    func waitUntilIdle() async {
        await resources.waitUntilClosed()
        await context.opening.openedStore?.waitUntilIdle()
    }

    /// Waits until no resource is open and all received bytes are recorded.
    ///
    /// A revalidation in the background keeps a resource open after the resource's last reader has ended.
    func waitUntilUnused() async {
        while resources.count > 0 {
            for resource in resources.open { await resource.scheduler.waitUntilIdle() }
            await resources.waitUntilClosed()
            await Task.yield()
        }
        await waitUntilIdle()
    }
}

extension MediaResource {
    /// Waits until no transfer is in flight.
    func waitUntilIdle() async { await resource?.scheduler.waitUntilIdle() }

    /// Reads a range, and checks that its bytes are complete, in order and equal to `pattern`.
    ///
    /// - Parameter covered: The expected bytes. The default is the range, if it has both bounds.
    func check(_ range: MediaRange = .all, _ pattern: PatternBytes, covers covered: Range<Int64>? = nil) async throws {
        var position: Int64?
        var count: Int64 = 0
        for try await chunk in reader(range) {
            try #require(position ?? chunk.offset == chunk.offset)
            try pattern.verify(chunk.data, at: chunk.offset)
            position = chunk.range.upperBound
            count += Int64(chunk.data.count)
        }
        guard let expected = covered ?? range.bytes else { return }
        try #require(count == expected.upperBound - expected.lowerBound)
        try #require(expected.isEmpty || position == expected.upperBound)
    }

    /// Reads a range, and returns the error of the read, or `nil` if the read succeeds.
    func failure(
        _ range: MediaRange = .all, after check: (MediaChunk) throws -> Void = { _ in }
    ) async throws -> CacheError? {
        do {
            for try await chunk in reader(range) { try check(chunk) }
            return nil
        } catch let error as CacheError {
            return error
        }
    }
}

extension MediaReader {
    /// Reads up to `offset` or the end, checks each byte, and returns the position.
    @discardableResult
    func check(_ pattern: PatternBytes, upTo offset: Int64 = .max) async throws -> Int64 {
        var position: Int64 = -1
        while position < offset, let chunk = try await next() {
            try pattern.verify(chunk.data, at: chunk.offset)
            if position >= 0 { try #require(chunk.offset == position) }
            position = chunk.range.upperBound
        }
        return position
    }
}

/// The maximum and the number of observed values.
final class Peak: Sendable {
    private let state = Mutex((most: Int64(0), looks: 0))

    var most: Int64 { state.withLock { $0.most } }
    var looks: Int { state.withLock { $0.looks } }

    func note(_ value: Int64) { state.withLock { $0 = (max($0.most, value), $0.looks + 1) } }
}

/// The events of a cache, recorded for later checks.
final class EventLog: Sendable {
    private let stream: AsyncStream<CacheEvent>

    init(_ cache: MediaCache) { stream = cache.events() }

    /// Waits for the first event for which `pick` returns a value.
    func first<T>(_ pick: (CacheEvent.Kind) -> T?) async -> T? {
        for await event in stream {
            if let picked = pick(event.kind) { return picked }
        }
        return nil
    }
}

extension MediaRange {
    fileprivate var bytes: Range<Int64>? { if case .bytes(let range) = self { range } else { nil } }
}
