import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

/// CASES E177 and E178: resolvers that never return, and resources that are reopened while they are closing.
@Suite(.timeLimit(.minutes(10)))
struct OpeningCases {
    private static let film = PatternBytes(seed: 1, length: 300_000)

    @Test("E177: a resolver that never returns does not block other sources of the same resource")
    func silentResolver() async throws {
        let stage = try MemoryStage([:], freshness: .http)
        stage.origin.script("/a") { [weak stage] _, _ in
            // The credentials expire while the response is in transit.
            stage?.pass(100)
            var head = HTTPResponse(status: .ok)
            head.headerFields[.eTag] = "\"1\""
            head.headerFields[.contentType] = "audio/mpeg"
            head.headerFields[.cacheControl] = "public, max-age=1000"
            head.headerFields[.contentLength] = "\(Self.film.length)"
            return .init(head, .pattern(Self.film))
        }
        let url = stage.url()
        let expiration = stage.date.withLock { $0 } + 50
        let (ending, end) = AsyncStream.makeStream(of: Void.self)
        let calls = Mutex(0)
        let silent = MediaSource(url: url) { _ in
            let isFirst = calls.withLock { count in
                count += 1
                return count == 1
            }
            if !isFirst { for await _ in ending {} }
            return ResolvedRequest(url: url, expiration: expiration)
        }
        try await stage.session { cache in
            try await cache.media(for: silent).check(.bytes(0..<100_000), Self.film)
            #expect(calls.withLock { $0 } == 1)
            try await cache.media(for: MediaSource(url: url)).check(.bytes(0..<100_000), Self.film)
            end.finish()
        }
    }

    @Test("E178: a caller that finds a resource while another caller reopens it receives the open resource")
    func closingResource() async throws {
        let scratch = try ScratchDirectory()
        let upstream = StubbornUpstream()
        let url = try #require(URL(string: "http://origin.test/a"))
        let cache = try await makeCache(
            directory: scratch.file("cache"), upstream: upstream, configuration: .init(),
            fileSystem: SystemFileSystem(), clock: CacheClock(clock: ContinuousClock()))
        let source = MediaSource(url: url)
        let credentials = SourceCredentials(source, now: { Date() }, executor: globalConcurrentExecutor)
        let identity = OpenResources.Identity(key: cache.key(for: source), source: source, distinguishesVariants: false)
        let seam = Mutex<(@Sendable () -> Void)?>(nil)
        let resources = OpenResources(beforeReopening: {
            let body = seam.withLock { body in
                defer { body = nil }
                return body
            }
            body?()
        })
        let make: @Sendable () -> OpenResource = {
            OpenResource(key: identity.key, credentials: credentials, context: cache.context)
        }
        let resource = try #require(resources.acquire(identity, make: make))
        try await resource.load(credentials)
        let reader = resource.readers.open(
            at: 0, end: nil, priority: .playback, credentials: credentials, opening: 1)
        await upstream.untilAsked()
        resource.readers.close(reader.id)
        resources.release(identity)
        // The resource cannot finish closing before its request ends, and the request ignores cancellation.
        while !resource.scheduler.inspect({ $0.machine.plan.isClosing }) {
            try Task.checkCancellation()
            await Task.yield()
        }
        let isOpen = Mutex(false)
        seam.withLock { seam in
            seam = {
                let second = resources.acquire(identity, make: make)
                isOpen.withLock {
                    $0 = second === resource && !resource.scheduler.inspect { $0.machine.plan.isClosing }
                }
            }
        }
        #expect(resources.acquire(identity, make: make) === resource)
        #expect(isOpen.withLock { $0 })
        #expect(!resource.scheduler.inspect { $0.machine.plan.isClosing })
        resources.release(identity)
        resources.release(identity)
        upstream.fail()
        await resources.waitUntilClosed()
        await cache.close()
    }
}

/// A transport that ignores cancellation, and fails when ``fail()`` is called.
private final class StubbornUpstream: Upstream {
    private let asked = AsyncStream.makeStream(of: Void.self)
    private let failing = AsyncStream.makeStream(of: Void.self)

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        asked.continuation.finish()
        let stream = failing.stream
        await Task.detached { for await _ in stream {} }.value
        throw UpstreamError(.unreachable, "the test has ended")
    }

    func untilAsked() async { for await _ in asked.stream {} }

    func fail() { failing.continuation.finish() }
}
