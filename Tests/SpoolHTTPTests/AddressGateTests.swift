#if AsyncHTTPClient
import Foundation
import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolHTTP

@Suite("Address checks before requests", .timeLimit(.minutes(10)))
struct AddressGateTests {
    private func upstream(
        proxies: [String: String] = [:], _ allows: @escaping @Sendable (IPAddress, Int) -> Bool
    ) -> AsyncHTTPClientUpstream {
        var configuration = HTTPUpstream.Configuration()
        configuration.proxyEnvironment = proxies
        configuration.allowsAddress = allows
        return AsyncHTTPClientUpstream(configuration)
    }

    private func error(_ upstream: any Upstream, _ url: URL) async throws -> UpstreamError {
        try #require(
            await #expect(throws: UpstreamError.self) { try await upstream.open(UpstreamRequest(url: url)) })
    }

    @Test("The resolved address of a host name is checked, and no request is sent if the address is rejected")
    func names() async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            let asked = Mutex<[(IPAddress, Int)]>([])
            let upstream = upstream { address, port in
                asked.withLock { $0.append((address, port)) }
                return false
            }
            var parts = try #require(URLComponents(url: origin.url("/a"), resolvingAgainstBaseURL: false))
            parts.host = "localhost"
            for url in [origin.url("/a"), try #require(parts.url)] {
                let error = try await error(upstream, url)
                #expect(error.underlying is RefusedAddress)
                #expect(!error.isTransient)
                #expect(error.message.hasSuffix("has an address that is not allowed"))
            }
            #expect(origin.log.exchanges.isEmpty)
            let loopback = try #require(IPAddress("127.0.0.1"))
            #expect(asked.withLock { $0.allSatisfy { $0.0 == loopback && $0.1 == origin.url("/a").port } })
            #expect(asked.withLock { $0.count } == 2)
        }
    }

    @Test("The address of a redirect target is checked each time, but that of a reused connection is not checked again")
    func redirects() async throws {
        try await OriginServer.run(["/b": .pattern(10)]) { inner in
            let target = inner.url("/b")
            try await OriginServer.run(["/a": .redirect(to: target.absoluteString)]) { outer in
                let count = Mutex(0)
                let upstream = upstream { _, port in
                    count.withLock { $0 += 1 }
                    return port != target.port
                }
                for _ in 0..<2 {
                    let error = try await error(upstream, outer.url("/a"))
                    #expect(error.underlying is RefusedAddress)
                    #expect(error.message.hasPrefix(target.absoluteString))
                }
                #expect(inner.log.exchanges.isEmpty)
                #expect(outer.log.exchanges.count == 2)
                #expect(count.withLock { $0 } == 3)
            }
        }
    }

    @Test("If a proxy is used, an IP address in a URL is checked, whatever its form, but a host name is not")
    func proxies() async throws {
        let upstream = upstream(proxies: ["http_proxy": "http://127.0.0.1:1"]) { _, _ in false }
        for (host, isRefused) in [
            ("10.0.0.1", true), ("[::1]", true), ("[::ffff:10.0.0.1]", true), ("media.example", false),
        ] {
            let error = try await error(upstream, try #require(URL(string: "http://\(host)/a")))
            #expect((error.underlying is RefusedAddress) == isRefused, "\(host)")
        }
        #expect(IPAddress("::ffff:10.0.0.1") == IPAddress("10.0.0.1"))
    }

    @Test("E230: no connection to a hidden address is opened, and the error is the same for any name or port")
    func hidden() async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            var configuration = HTTPUpstream.Configuration()
            configuration.proxyEnvironment = [:]
            let loopback = try #require(IPAddress("127.0.0.1"))
            configuration.allowsAddress = { address, _ in address != loopback && address.bytes.count == 4 }
            configuration.hidesAddresses = true
            let upstream = AsyncHTTPClientUpstream(configuration)
            var texts: Set<String> = []
            // The URLs contain an open port, a closed port, TLS, other forms of the address, and a name that is too
            // long.
            for address in [
                "http://localhost:\(origin.port)", "http://127.1:\(origin.port)", "http://127.0.0.1:\(origin.port)",
                "http://2130706433:\(origin.port)", "http://localhost:1", "https://localhost:\(origin.port)",
                "http://[::1]:\(origin.port)", "http://\(String(repeating: "a", count: 64)).invalid",
            ] {
                let url = try #require(URL(string: address + "/a"))
                let error = try await error(upstream, url)
                #expect(error.code == .unreachable && error.underlying is HiddenAddress, "\(address): \(error)")
                texts.insert(error.message(after: url.absoluteString))
            }
            #expect(texts == ["cannot be reached: its host has no address that may be used"])
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("E230: a host name with allowed addresses can be requested, and is not resolved again for some time")
    func allowed() async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            var configuration = HTTPUpstream.Configuration()
            configuration.proxyEnvironment = [:]
            let count = Mutex(0)
            configuration.allowsAddress = { _, _ in
                count.withLock { $0 += 1 }
                return true
            }
            configuration.hidesAddresses = true
            let upstream = AsyncHTTPClientUpstream(configuration)
            var counts: [Int] = []
            for _ in 0..<3 {
                let request = UpstreamRequest(url: origin.url("/a", host: "localhost"))
                let response = try await upstream.open(request)
                #expect(response.head.status == .ok)
                for try await _ in response.body {}
                counts.append(count.withLock { $0 })
            }
            #expect(counts[0] > 0 && counts[1] <= counts[0] + 1 && counts[2] <= counts[1] + 1)
        }
    }
}
#endif
