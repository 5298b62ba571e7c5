import NIOCore
import SpoolHTTP
import Testing

@testable import SpoolProxy

/// The identification of the client whose request a load balancer has forwarded.
@Suite struct TrustedProxiesTests {
    private static let proxies = TrustedProxies(["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.7"])

    /// Returns the client of a request with the given `Forwarded` and `X-Forwarded-For` lines.
    private func client(
        _ forwarded: [String], _ others: [String], at address: String = "10.0.0.1"
    ) throws -> ProxyClient {
        var lines = ["GET / HTTP/1.1", "Host: localhost"]
        lines += forwarded.map { "Forwarded: \($0)" } + others.map { "X-Forwarded-For: \($0)" }
        var buffer = ByteBuffer(string: lines.joined(separator: "\r\n") + "\r\n\r\n")
        var parser = RequestParser(limit: 1 << 16)
        let head = try #require(try parser.next(in: &buffer))
        let peer = Self.proxies.client(at: try SocketAddress(ipAddress: address, port: 1))
        try #require(peer.kind == .trustedProxy)
        return try Self.proxies.client(of: head.fields, from: peer)
    }

    @Test(
        "E206: the last node in the forwarding fields that is not a trusted proxy counts as the client",
        arguments: [
            ([], ["198.51.100.1"], "198.51.100.1"),
            ([], ["203.0.113.9, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            ([], ["203.0.113.9", "198.51.100.1:443, 192.0.2.7"], "198.51.100.1"),
            ([], ["::ffff:198.51.100.1"], "198.51.100.1"),
            ([], ["garbage! \", name, 198.51.100.1"], "198.51.100.1"),
            ([], ["127.0.0.1"], "127.0.0.1"),
            ([], ["2001:DB8:0:0::1", "2001:db8:1::5"], "2001:db8::1"),
            ([], ["198.51.100.1, unknown"], "unknown"),
            ([], ["198.51.100.1, name"], nil), ([], ["198.51.100.1, <>"], nil),
            (["for=\"[::1\", for=198.51.100.1"], [], "198.51.100.1"),
            (["for=203.0.113.9;proto=http", "for=198.51.100.1, for=\"10.1.1.1:80\""], [], "198.51.100.1"),
            (["for=203.0.113.9, for=_secret"], [], "_secret"),
            (["for=203.0.113.9, proto=http"], [], "unknown"),
            (["for=198.51.100.1"], ["198.51.100.1"], "198.51.100.1"),
            (["for=203.0.113.9"], ["198.51.100.1"], nil),
            (["for=203.0.113.9"], ["10.0.0.2"], nil),
            (["for=\"x, for=198.51.100.1"], [], nil),
        ] as [([String], [String], String?)])
    func named(forwarded: [String], others: [String], text: String?) throws {
        guard let text else {
            let failure = #expect(throws: RequestFailure.self) { try client(forwarded, others) }
            #expect(failure?.status == 400)
            return
        }
        let found = try client(forwarded, others)
        #expect(found.text == text)
        #expect(found.kind == .named && found.isLimited && !found.isLoopback)
    }

    @Test(
        "E206: if the forwarding fields do not identify a client, the trusted proxy counts as the client",
        arguments: [[], [""], ["10.0.0.3, 10.0.0.2"], ["10.0.0.3", ",", "192.0.2.7"]])
    func unnamed(others: [String]) throws {
        let found = try client([], others)
        #expect(found.text == "10.0.0.1" && found.kind == .trustedProxy)
        #expect(!found.isLimited && !found.isLoopback)
    }

    @Test("E206: trusted proxies are given as addresses or blocks, and an IPv4-mapped IPv6 address counts as IPv4")
    func blocks() throws {
        func isTrusted(_ block: String, _ address: String) throws -> Bool {
            let client = TrustedProxies([block]).client(at: try SocketAddress(ipAddress: address, port: 1))
            return client.kind == .trustedProxy
        }
        for (block, address) in [
            ("10.0.0.0/8", "10.255.0.1"), ("10.0.0.1", "::ffff:10.0.0.1"), ("::ffff:10.0.0.0/104", "10.1.1.1"),
            ("0.0.0.0/0", "1.2.3.4"), ("[2001:db8::]/32", "2001:db8:ffff::1"), ("192.0.2.129/25", "192.0.2.254"),
            ("127.0.0.1", "127.0.0.1"), ("fe80::/10", "fe80::1"),
        ] { #expect(try isTrusted(block, address), "\(block) \(address)") }
        for (block, address) in [
            ("10.0.0.0/8", "11.0.0.1"), ("10.0.0.1", "10.0.0.2"), ("0.0.0.0/0", "2001:db8::1"), ("::/0", "1.2.3.4"),
            ("192.0.2.129/25", "192.0.2.127"), ("2001:db8::/33", "2001:db8:8000::1"),
        ] { #expect(try !isTrusted(block, address), "\(block) \(address)") }
        for text in [
            "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0/8", "::/129", "a", "*",
        ] {
            #expect(AddressBlock(text[...]) == nil, "\(text)")
        }
        #expect(AddressBlock("::ffff:10.0.0.0/95") == nil)
    }

    @Test("E210: a server with trusted proxies counts as reachable from other machines, even on 127.0.0.1")
    func reachable() throws {
        var configuration = ProxyConfiguration()
        configuration.trustedProxies = ["127.0.0.1"]
        let failure = #expect(throws: ProxyError.self) { try configuration.validate() }
        #expect(failure?.description.contains("through a trusted proxy") == true)
        configuration.token = "secret"
        try configuration.validate()
        // A server that counts as reachable does not connect to addresses in the local network.
        let restricted = configuration.restricting(.init())
        let allows = try #require(restricted.allowsAddress)
        #expect(restricted.hidesAddresses)
        #expect(allows(try #require(IPAddress("192.168.0.1")), 80) == false)
        #expect(allows(try #require(IPAddress("1.1.1.1")), 80))
        #expect(!ProxyConfiguration().restricting(.init()).hidesAddresses)
    }

    @Test("Invalid trusted proxies, the PROXY protocol without trusted proxies, and a limit below one are rejected")
    func invalid() {
        var configuration = ProxyConfiguration()
        configuration.token = "secret"
        configuration.trustedProxies = ["10.0.0.0/33"]
        #expect(throws: ProxyError.self) { try configuration.validate() }
        configuration.trustedProxies = []
        configuration.usesProxyProtocol = true
        #expect(throws: ProxyError.self) { try configuration.validate() }
        configuration.usesProxyProtocol = false
        configuration.limits.maximumConnectionsPerClient = 0
        #expect(throws: ProxyError.self) { try configuration.validate() }
    }
}
