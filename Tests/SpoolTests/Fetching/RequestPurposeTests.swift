import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Request purposes", .timeLimit(.minutes(5)))
struct RequestPurposeTests {
    /// An origin that records the purposes of requests, and rejects requests with some purposes, as the system does on
    /// some networks.
    private final class PurposeUpstream: Upstream {
        let rejects: Set<UpstreamRequest.Purpose>
        private let origin = ScriptedUpstream([
            "/a.mp3": .pattern(100_000), "/b.mp3": .pattern(100_000), "/c.mp3": .pattern(100_000),
        ])
        private let recorded = Mutex<[String: [UpstreamRequest.Purpose]]>([:])

        init(rejects: Set<UpstreamRequest.Purpose> = []) { self.rejects = rejects }

        func purposes(_ path: String) -> Set<UpstreamRequest.Purpose> {
            recorded.withLock { Set($0[path] ?? []) }
        }

        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            recorded.withLock { $0[request.url.path, default: []].append(request.purpose) }
            guard !rejects.contains(request.purpose) else {
                throw UpstreamError(.networkNotAllowed, "\(request.url.absoluteString) is not allowed")
            }
            return try await origin.open(request)
        }
    }

    private func source(_ name: String) throws -> MediaSource {
        MediaSource(url: try #require(URL(string: "https://media.example/\(name)")))
    }

    private func cache(_ upstream: any Upstream) -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.retry.maximumRetryCount = 0
        return .inMemory(upstream: upstream, configuration: configuration)
    }

    @Test("E372: requests for playback, preloads and downloads have different purposes")
    func purposes() async throws {
        let upstream = PurposeUpstream()
        let cache = cache(upstream)
        _ = try await cache.media(for: try source("a.mp3")).data(in: 0..<100_000)
        await Preloader(cache).add(try source("b.mp3"), .entire).finished()
        let download = try await cache.downloads.add(try source("c.mp3"), to: "set")
        await download.finished()
        #expect(upstream.purposes("/a.mp3") == [.playback])
        #expect(upstream.purposes("/b.mp3") == [.preload])
        #expect(upstream.purposes("/c.mp3") == [.download])
        await cache.close()
    }

    @Test("E375: a preload that is not allowed on the current network does not delay playback")
    func rejected() async throws {
        let upstream = PurposeUpstream(rejects: [.preload])
        let cache = cache(upstream)
        let preload = await Preloader(cache).add(try source("a.mp3"), .entire).finished()
        #expect(preload.phase == .failed)
        let error = (preload.error as? CacheError)?.underlying as? UpstreamError
        #expect(error?.code == .networkNotAllowed && error?.isTransient == true)
        let origin = cache.context.coordinator.origin(of: try source("a.mp3").url)
        #expect(origin.lastFailure(at: cache.context.clock.elapsed()) == nil)
        #expect(try await cache.media(for: try source("a.mp3")).data(in: 0..<100_000).count == 100_000)
        await cache.close()
    }
}
