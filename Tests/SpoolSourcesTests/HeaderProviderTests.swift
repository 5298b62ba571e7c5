import Foundation
import HTTPTypes
import Spool
import SpoolSources
import Synchronization
import Testing

@Suite("Accounts")
struct HeaderProviderTests {
    private let bytes = Data((0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 17) })

    /// Returns an origin that requires the newest token.
    private func origin(_ token: TokenBox) -> RespondingUpstream {
        RespondingUpstream { [bytes] request in
            request.headerFields[.authorization] == "Bearer \(token.newest)"
                ? RespondingUpstream.media(bytes, request) : .init(status: 401)
        }
    }

    @Test("If eight concurrent reads use a rejected token, the token is refreshed once, and all reads complete")
    func oneRefresh() async throws {
        let token = TokenBox()
        let upstream = origin(token)
        let account = HeaderProvider.bearer("old") { (token.refresh(), nil) }
        let cache = try TestCache(upstream)
        try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<8 {
                let url = try #require(URL(string: "https://drive.example/\(number)"))
                group.addTask { try await cache.read(account.media(at: url), 0..<400_000) }
            }
            for try await data in group { #expect(data == bytes) }
        }
        #expect(token.refreshes == 1)
        await cache.close()
    }

    @Test("A token that is revoked during playback is refreshed once, and each byte is fetched once")
    func withdrawn() async throws {
        let token = TokenBox()
        let upstream = origin(token)
        let account = HeaderProvider.bearer { (token.refresh(), nil) }
        let cache = try TestCache(upstream)
        let urls = try (0..<4).map { try #require(URL(string: "https://drive.example/\($0)")) }
        for url in urls { _ = try await cache.read(account.media(at: url), 0..<65_536) }
        token.withdraw()
        for url in urls { #expect(try await cache.read(account.media(at: url), 0..<400_000) == bytes) }
        #expect(token.refreshes == 2)
        #expect(upstream.requests.allSatisfy { $0.headerFields[.authorization]?.hasPrefix("Bearer ") == true })
        #expect(cache.cache.statistics.bytesFromOrigin == 4 * 400_000)
        await cache.close()
    }

    @Test("A token is not sent after it expires")
    func expiry() async throws {
        let token = TokenBox()
        let upstream = origin(token)
        let date = Mutex(Date(timeIntervalSince1970: 0))
        let account = HeaderProvider.bearer("old", expiration: Date(timeIntervalSince1970: 10)) {
            date.withLock { $0 }
        } refresh: {
            (token.refresh(), nil)
        }
        date.withLock { $0 = Date(timeIntervalSince1970: 11) }
        let cache = try TestCache(upstream)
        let url = try #require(URL(string: "https://drive.example/a"))
        #expect(try await cache.read(account.media(at: url), 0..<400_000) == bytes)
        #expect(upstream.requests.allSatisfy { $0.headerFields[.authorization] != "Bearer old" })
        await cache.close()
    }

    @Test("If an account is permanently rejected, reads fail with the origin's status after at most two requests")
    func refused() async throws {
        let upstream = RespondingUpstream { _ in .init(status: 403) }
        let account = HeaderProvider.basic(user: "ü", password: "p:q")
        let cache = try TestCache(upstream)
        let url = try #require(URL(string: "https://drive.example/a"))
        let error = await #expect(throws: CacheError.self) { try await cache.read(account.media(at: url), 0..<10) }
        #expect(error?.httpStatus == 403)
        #expect(upstream.requests.count <= 2)
        #expect(upstream.requests.first?.headerFields[.authorization] == "Basic w7w6cDpx")
        await cache.close()
    }

    @Test("Yandex.Disk: the download URL is requested with the token, used without it, and renewed after it expires")
    func yandexDisk() async throws {
        let link = Mutex(1)
        let upstream = RespondingUpstream { [bytes] request in
            let number = link.withLock { $0 }
            if request.url.path == "/v1/disk/resources/download" {
                guard request.headerFields[.authorization] == "OAuth t",
                    request.url.query == "path=/Music/a%20b%2B.mp3"
                else { return .init(status: 401) }
                let body =
                    "{\"href\":\"https://downloader.example/disk/\(number)\",\"method\":\"GET\",\"templated\":false}"
                return .init(fields: [.contentType: "application/json"], body: Data(body.utf8))
            }
            guard request.url.path == "/disk/\(number)", request.headerFields[.authorization] == nil else {
                return .init(status: 410)
            }
            return RespondingUpstream.media(bytes, request)
        }
        let disk = YandexDisk(token: { _ in "t" }, upstream: upstream)
        let cache = try TestCache(upstream)
        let song = disk.media(at: "/Music/a b+.mp3")
        #expect(try await cache.read(song, 0..<100) == bytes[..<100])
        link.withLock { $0 = 2 }
        #expect(try await cache.read(song, 0..<400_000) == bytes)
        #expect(upstream.requests.count { $0.url.path == "/v1/disk/resources/download" } == 2)
        #expect(cache.cache.statistics.bytesFromOrigin == 400_000)
        await cache.close()
    }
}

/// The tokens from an authorization server.
private final class TokenBox: Sendable {
    private let state = Mutex((newest: 0, refreshes: 0))

    var newest: String { state.withLock { "t\($0.newest)" } }
    var refreshes: Int { state.withLock { $0.refreshes } }

    func withdraw() { state.withLock { $0.newest += 1 } }

    func refresh() -> String {
        state.withLock { state in
            state.refreshes += 1
            return "t\(state.newest)"
        }
    }
}
