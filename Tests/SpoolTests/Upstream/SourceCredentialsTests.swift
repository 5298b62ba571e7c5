import Foundation
import HTTPTypes
import SpoolStorage
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("A source's credentials", .timeLimit(.minutes(10)))
final class SourceCredentialsTests: Sendable {
    private let url = URL(string: "http://origin.test/a")!
    private let executor = BlockingExecutor()
    private let date = Mutex(Date(timeIntervalSince1970: 1_000_000))

    private func credentials(
        _ resolve: @escaping @Sendable (MediaSource.ResolutionReason) async throws -> ResolvedRequest
    )
        -> SourceCredentials
    {
        credentials(MediaSource(url: url, resolve: resolve))
    }

    private func credentials(_ source: MediaSource) -> SourceCredentials {
        SourceCredentials(source, now: { [self] in date.withLock { $0 } }, executor: executor.executor(for: .playback))
    }

    @Test("The source is resolved once for any number of concurrent transfers")
    func resolvedOnce() async throws {
        let calls = Mutex(0)
        let url = url
        let credentials = credentials { _ in
            calls.withLock { $0 += 1 }
            return .init(url: url)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try await credentials.resolved() } }
            try await group.waitForAll()
        }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test("After a rejection, the source is resolved once, and again only after the origin has accepted a request")
    func refreshed() async throws {
        let reasons = Mutex<[MediaSource.ResolutionReason]>([])
        let url = url
        let credentials = credentials { reason in
            reasons.withLock { $0.append(reason) }
            return .init(url: url)
        }
        let first = try await credentials.resolved()
        #expect(try await credentials.refresh(first.number, status: 401))
        #expect(try await credentials.refresh(first.number, status: 401))
        let second = try await credentials.resolved()
        #expect(second.number > first.number)
        #expect(try await credentials.refresh(second.number, status: 403) == false)
        credentials.accepted()
        #expect(try await credentials.refresh(second.number, status: 403))
        #expect(reasons.withLock { $0 } == [.initial, .refused(status: 401), .refused(status: 403)])
    }

    @Test("After a rejected read, the next read resolves the source again")
    func refusedForGood() async throws {
        let stage = try MemoryStage(["/a": .pattern(100_000, .requiresField("Authorization", "Bearer 2", else: 401))])
        let calls = Mutex(0)
        let url = stage.url()
        try await stage.session { (cache: MediaCache) async throws in
            let media = cache.media(
                for: MediaSource(url: url) { _ in
                    let number = calls.withLock { calls in
                        defer { calls += 1 }
                        return calls
                    }
                    return ResolvedRequest(url: url, headerFields: [.authorization: "Bearer \(number)"])
                })
            let error = await #expect(throws: CacheError.self) { try await media.data(in: 0..<10) }
            #expect(error?.httpStatus == 401)
            #expect(calls.withLock { $0 } == 2)
            #expect(try await media.data(in: 0..<10).count == 10)
        }
        #expect(calls.withLock { $0 } == 3)
    }

    @Test("A cancelled task does not wait for a resolver that never returns")
    func cancelledBesideAResolverThatHangs() async throws {
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        let url = url
        let credentials = credentials { _ in
            await Task.detached { for await _ in never {} }.value
            return .init(url: url)
        }
        let waiting = Task { try await credentials.resolved() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        end.finish()
        #expect(try await credentials.resolved().number == 0)
    }

    @Test("The source is resolved again, once for all callers, after the resolved request expires, and not before")
    func expiring() async throws {
        let reasons = Mutex<[MediaSource.ResolutionReason]>([])
        let url = url
        let credentials = credentials { [self] reason in
            reasons.withLock { $0.append(reason) }
            return .init(url: url, expiration: date.withLock { $0 + 60 })
        }
        _ = try await credentials.resolved()
        date.withLock { $0 += 59 }
        #expect(try await credentials.resolved().number == 0)
        date.withLock { $0 += 1 }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 { group.addTask { try await credentials.resolved().number } }
            for try await number in group { #expect(number == 1) }
        }
        #expect(reasons.withLock { $0 } == [.initial, .expired])
        // The rejection of an expired request does not resolve the source again.
        #expect(try await credentials.refresh(0, status: 403))
        #expect(reasons.withLock { $0.count } == 2)
    }

    @Test("A resolved request that has already expired is used once, and is resolved again for the next request")
    func expiredAtOnce() async throws {
        let calls = Mutex(0)
        let url = url
        let credentials = credentials { _ in
            calls.withLock { $0 += 1 }
            return .init(url: url, expiration: .distantPast)
        }
        for number in 0..<3 { #expect(try await credentials.resolved().number == number) }
        #expect(calls.withLock { $0 } == 3)
    }

    @Test("After the only waiting task is cancelled, the resolver's result does not affect later calls")
    func cancelledBeforeTheEnd() async throws {
        struct Failure: Error {}
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let calls = Mutex(0)
        let url = url
        let credentials = credentials { _ in
            guard
                calls.withLock({
                    $0 += 1; return $0
                }) == 1
            else { return .init(url: url) }
            for await _ in gate {}
            throw Failure()
        }
        let waiting = Task { try await credentials.resolved() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let next = Task { try await credentials.resolved() }
        open.finish()
        // The next caller has either joined the first call or started a second one.
        let outcome = await next.result
        if case .failure(let error) = outcome { #expect(error is Failure) }
        #expect(try await credentials.resolved().request.url == url)
    }

    @Test("A source with fixed header fields cannot be resolved again")
    func fixed() async throws {
        let source = MediaSource(url: url, headerFields: [.authorization: "Bearer old"])
        let credentials = credentials(source)
        let resolved = try await credentials.resolved()
        #expect(resolved.request.headerFields[.authorization] == "Bearer old")
        #expect(try await credentials.refresh(resolved.number, status: 401) == false)
    }

    @Test("A resolver that fails is called again for the next transfer")
    func failing() async throws {
        struct Failure: Error {}
        let fails = Mutex(true)
        let url = url
        let credentials = credentials { _ in
            if fails.withLock({ $0 }) { throw Failure() }
            return .init(url: url)
        }
        await #expect(throws: Failure.self) { try await credentials.resolved() }
        fails.withLock { $0 = false }
        #expect(try await credentials.resolved().request.url == url)
    }
}
