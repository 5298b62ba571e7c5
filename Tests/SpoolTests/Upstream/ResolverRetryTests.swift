import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

@Suite("Failing resolvers", .timeLimit(.minutes(10)))
struct ResolverRetryTests {
    private struct Refused: Error {}
    private let song = PatternBytes(seed: 1, length: 300_000)

    /// Returns a source whose resolver throws the errors in order, and then returns the number of the call as a token.
    private func source(
        _ stage: MemoryStage, calls: Calls, first: Bool = true, _ errors: [any Error]
    ) -> MediaSource {
        let url = stage.url()
        return MediaSource(url: url) { _ in
            let call = calls.count.withLock { count in
                defer { count += 1 }
                return count
            }
            let index = first ? call : call - 1
            if errors.indices.contains(index) { throw errors[index] }
            return ResolvedRequest(url: url, headerFields: [.authorization: "Bearer \(call)"])
        }
    }

    private final class Calls: Sendable { let count = Mutex(0) }

    @Test(
        "A resolver that fails because of network loss is called again after a delay, and playback continues"
    )
    func networkIsBack() async throws {
        let errors: [any Error] = [
            URLError(.notConnectedToInternet), URLError(.timedOut), URLError(.networkConnectionLost),
            UpstreamError(.unreachable, "the token server can't be reached"),
        ]
        let stage = try MemoryStage(["/a": .pattern(300_000)])
        let calls = Calls()
        try await stage.session { cache in
            let media = cache.media(for: source(stage, calls: calls, errors))
            try await media.check(.all, song, covers: 0..<300_000)
            #expect(media.statistics.originRequests >= 1)
        }
        #expect(calls.count.withLock { $0 } == errors.count + 1)
        #expect(stage.clock.now.offset >= RetryPolicy().initialDelay)
    }

    @Test("After a rejection by the origin, a resolver that fails because of network loss is called again")
    func networkIsBackAfterRefusal() async throws {
        let stage = try MemoryStage(["/a": .pattern(300_000, .requiresField("Authorization", "Bearer 3", else: 401))])
        let calls = Calls()
        let errors = [URLError(.cannotFindHost), URLError(.cannotConnectToHost)]
        try await stage.session { cache in
            let media = cache.media(for: source(stage, calls: calls, first: false, errors))
            try await media.check(.all, song, covers: 0..<300_000)
        }
        #expect(calls.count.withLock { $0 } == 4)
    }

    @Test("After the last attempt to resolve a source, the error names the resource and the unreachable network")
    func networkStaysAway() async throws {
        let stage = try MemoryStage(["/a": .pattern(300_000)])
        let calls = Calls()
        let errors = [any Error](repeating: URLError(.notConnectedToInternet), count: 100)
        try await stage.session { cache in
            let media = cache.media(for: source(stage, calls: calls, errors))
            let error = await #expect(throws: CacheError.self) { try await media.data(in: 0..<10) }
            #expect(error?.code == .originUnavailable)
            #expect((error?.underlying as? UpstreamError)?.code == .unreachable)
            #expect(error?.message.hasPrefix("http://origin.test/a, bytes 0–") == true)
            #expect(error?.message.hasSuffix("could not be resolved: the network can't be reached") == true)
            let last = await #expect(throws: CacheError.self) { _ = try await media.reader(.suffix(10)).next() }
            #expect((last?.underlying as? UpstreamError)?.code == .unreachable)
        }
        #expect(calls.count.withLock { $0 } > RetryPolicy().maximumRetryCount)
    }

    @Test("If a resolver fails for another reason, playback fails immediately")
    func otherErrors() async throws {
        for error in [Refused(), URLError(.userAuthenticationRequired), UpstreamError(.untrustedServer, "no")]
            as [any Error]
        {
            let stage = try MemoryStage(["/a": .pattern(300_000)])
            let calls = Calls()
            try await stage.session { cache in
                let media = cache.media(for: source(stage, calls: calls, [error]))
                let failure = await #expect(throws: CacheError.self) { try await media.data(in: 0..<10) }
                #expect(failure?.code == .originUnavailable)
            }
            #expect(calls.count.withLock { $0 } == 1)
        }
    }
}
