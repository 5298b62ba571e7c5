import Foundation
import Testing

@testable import SpoolProxy
@testable import SpoolStreams

@Suite struct ForwardAddressTests {
    @Test(arguments: [
        ("/http/host/a/b.mp4", "http://host/a/b.mp4"),
        ("/https/host/a/b.mp4?x=1&y=%2F", "https://host/a/b.mp4?x=1&y=%2F"),
        ("/http/host:80/a", "http://host:80/a"),
        ("/https/host:65535/", "https://host:65535/"),
        ("/http/%5B::1%5D:8000/a", "http://[::1]:8000/a"),
        ("/http/192.0.2.1/%2E%2e./a%20b", "http://192.0.2.1/%2E%2e./a%20b"),
        ("/http/under_score.example./a//b/?", "http://under_score.example./a//b/?"),
        ("/http/h/a?b=/http/x/?c#".replacingOccurrences(of: "#", with: ""), "http://h/a?b=/http/x/?c"),
        ("/http/h/é", "http://h/é"),
    ])
    func `A request target and its URL can be converted into each other`(address: String, url: String) throws {
        let origin = try ForwardAddress.origin(of: address)
        #expect(origin.description == url)
        #expect(ForwardAddress.requestTarget(for: origin) == address)
        #expect(try ForwardAddress.requestTarget(for: OriginURL(url)) == address)
    }

    @Test(arguments: [
        ("/http/host", "http://host/"),
        ("/http/host?x=1/2", "http://host/?x=1/2"),
        ("/HTTPS/HoSt.Example:0443/A", "https://host.example:443/A"),
        ("/http/host:/a", "http://host/a"),
        ("/http/[2001:DB8::1]/a", "http://[2001:db8::1]/a"),
        ("/http/%5b::ffff:192.0.2.1%5d/", "http://[::ffff:192.0.2.1]/"),
        ("/http/h/a/../../../b/./c", "http://h/a/../../../b/./c"),
    ])
    func `All allowed spellings of a request target are parsed`(address: String, url: String) throws {
        #expect(try ForwardAddress.origin(of: address).description == url)
    }

    @Test func `Dot segments of a URL are resolved before they could reach another host`() throws {
        #expect(try ForwardAddress.requestTarget(for: OriginURL("http://h/../../x/./y/..")) == "/http/h/x/")
        #expect(try ForwardAddress.requestTarget(for: OriginURL("http://h?../x")) == "/http/h/?../x")
        #expect(try OriginURL("http://h/a#part").description == "http://h/a")
    }

    @Test(arguments: [
        ("", AddressError.Code.scheme), ("/", .scheme), ("http/h/a", .scheme), ("//http/h", .scheme),
        ("/http", .scheme),
        ("/ftp/h/a", .scheme), ("/file/etc/passwd", .scheme), ("/http:/h/a", .scheme), ("?/http/h", .scheme),
        ("/http/", .host), ("/http//a", .host), ("/http/:80/a", .host), ("/http/../a", .host), ("/http/./a", .host),
        ("/http/a..b/", .host), ("/http/a b/", .host), ("/http/ho%73t/", .host), ("/http/hö.example/", .host),
        ("/http/[::1/a", .host), ("/http/[::1%25eth0]/a", .host), ("/http/[v1.a]/", .host), ("/http/[]/", .host),
        ("/http/[1.2.3.4]/", .host), ("/http/::1/a", .host), ("/http/%5B::1/a", .host), ("/http/a\\b/", .host),
        ("/http/\(String(repeating: "a", count: 64)).example/", .host),
        ("/http/\(Array(repeating: "abc", count: 64).joined(separator: "."))/", .host),
        ("/http/h:0/", .port), ("/http/h:65536/", .port), ("/http/h:99999999999999999999/", .port),
        ("/http/h:+1/", .port), ("/http/[::1]x/", .port), ("/http/[::1]:x/", .port),
        ("/http/user:secret@h/", .userInformation), ("/http/h/a b", .characters), ("/http/h/a\r\nX: y", .characters),
        ("/http/h/a?b#c", .characters), ("/http/h/\0", .characters),
    ])
    func `An invalid request target is rejected with a code and a one-line message`(
        address: String, code: AddressError.Code
    ) throws {
        let error = try #require(throws: AddressError.self) { try ForwardAddress.origin(of: address) }
        #expect(error.code == code)
        #expect(!error.description.contains("secret") && !error.description.contains("\n"))
    }

    @Test func `Error messages contain no part of the query`() throws {
        for address in ["/ftp/h/a?secret", "/http/a..b/?secret", "/http/h/ ?secret", "/http/h/?secret b"] {
            let error = try #require(throws: AddressError.self) { try ForwardAddress.origin(of: address) }
            #expect(!error.description.contains("secret"))
        }
    }

    @Test func `In the Foundation URL, only invalid characters are percent-encoded`() throws {
        let origin = try ForwardAddress.origin(of: "/http/h/a%2Fb|é%zz%?q=[1]&\"=%e9")
        #expect(origin.url?.absoluteString == "http://h/a%2Fb%7C%C3%A9%25zz%25?q=%5B1%5D&%22=%e9")
        #expect(try OriginURL("http://[::1]:8000/a").url?.host() == "::1")
    }

    @Test func `Origins are equal whether or not the default port is explicit`() throws {
        #expect(try OriginURL("http://H/a").isSameOrigin(as: OriginURL("http://h:80/b")))
        #expect(try OriginURL("https://h").isSameOrigin(as: OriginURL("https://h:443")))
        #expect(try !OriginURL("https://h").isSameOrigin(as: OriginURL("http://h")))
        #expect(try !OriginURL("http://h:443").isSameOrigin(as: OriginURL("https://h:443")))
    }
}
