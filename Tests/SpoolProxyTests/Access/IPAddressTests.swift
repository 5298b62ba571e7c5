import NIOCore
import SpoolHTTP
import Testing

@testable import SpoolProxy

/// The distinction between public and special IP addresses, and patterns for hosts.
@Suite struct IPAddressTests {
    @Test(
        "E333: loopback, private and other special-purpose addresses are not treated as public",
        arguments: [
            "127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255", "168.63.129.16", "198.18.0.1", "192.0.2.1", "::1", "::", "fe80::1%eth0", "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1", "2002:a00:1::", "2001::1", "2001:db8::1", "3fff::1",
        ])
    func special(_ text: String) throws {
        #expect(try #require(IPAddress(host: text)).isSpecial)
    }

    @Test(arguments: [
        "1.1.1.1", "172.32.0.1", "100.128.0.1", "9.9.9.9", "168.63.129.17", "2606:4700::1", "2a00::1", "::ffff:1.1.1.1",
    ])
    func `Addresses outside special-purpose ranges are public`(_ text: String) throws {
        #expect(try !#require(IPAddress(host: text)).isSpecial)
    }

    @Test(arguments: ["127.1", "0x7f.0.0.1", "1.2.3", "localhost", "", "1.2.3.4.5", "[::1", "::g"])
    func `Abbreviated or malformed text is not an IP address`(_ text: String) { #expect(IPAddress(host: text) == nil) }

    @Test func `A pattern matches a host, its subdomains or all hosts, on one port or any port`() throws {
        let exact = try #require(HostPattern("Media.example"))
        #expect(exact.matches("media.example", port: 443))
        #expect(!exact.matches("a.media.example", port: 443))
        let below = try #require(HostPattern("*.example.com:8080"))
        #expect(below.matches("a.b.example.com", port: 8080))
        #expect(!below.matches("a.example.com", port: 80))
        #expect(!below.matches("example.com", port: 8080))
        #expect(!below.matches("badexample.com", port: 8080))
        #expect(try #require(HostPattern("*")).matches("x", port: 1))
        for text in ["", "*.", "a*", "*.*.a", "http://a", "a/b"] { #expect(HostPattern(text) == nil) }
    }

    @Test(
        "E190: clients in one /64 IPv6 network share a connection limit; each IPv4 client has a separate limit",
        arguments: [
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("192.0.2.1", "192.0.2.2", false),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("::1", "::2", false),
        ])
    func networks(one: String, other: String, areOne: Bool) throws {
        let networks = try [one, other].map { ProxyClient(try SocketAddress(ipAddress: $0, port: 1)).network }
        #expect((networks[0] == networks[1]) == areOne)
    }
}
