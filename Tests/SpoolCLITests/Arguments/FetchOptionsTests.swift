import ArgumentParser
import Foundation
import Spool
import SpoolHTTP
import Testing

@testable import SpoolCLI

@Suite("Options for requests to origins")
struct FetchOptionsTests {
    @Test("Without options for requests, the library's defaults apply, and each option changes one setting")
    func configuration() throws {
        let usual = try FetchOptions.parse([]).upstreamConfiguration
        #expect(!usual.allowsInsecureRedirects)
        #expect(usual.lowSpeedLimit == HTTPUpstream.Configuration().lowSpeedLimit)
        let other = try FetchOptions.parse(["--allow-http-redirects", "--low-speed-limit", "50kB"])
            .upstreamConfiguration
        #expect(other.allowsInsecureRedirects)
        #expect(other.lowSpeedLimit == 50_000)
        #expect(try FetchOptions.parse(["--low-speed-limit", "0"]).upstreamConfiguration.lowSpeedLimit == 0)
        let most = try FetchOptions.parse(["--low-speed-limit", "9007199254740992"]).upstreamConfiguration
        #expect(most.lowSpeedLimit == 1 << 53)
        #expect(throws: (any Error).self) { try FetchOptions.parse(["--low-speed-limit", "9007199254740993"]) }
    }

    @Test("E138: --maximum-redirects limits the redirects, is 20 by default, and rejects negative numbers")
    func redirects() throws {
        #expect(try FetchOptions.parse([]).upstreamConfiguration.maximumRedirects == 20)
        #expect(try FetchOptions.parse(["--maximum-redirects", "0"]).upstreamConfiguration.maximumRedirects == 0)
        #expect(throws: (any Error).self) { try FetchOptions.parse(["--maximum-redirects=-1"]) }
    }

    @Test("E70: the error for a rejected redirect from https to http names the option that allows the redirect")
    func advice() {
        func line(_ cause: UpstreamError) -> String? {
            ErrorReport(CacheError(.originUnavailable, cause.message, underlying: cause), arguments: []).lines.first
        }
        let sentence = "https://h/a redirects from https to http"
        let refused = UpstreamError(.invalidRedirect, sentence, underlying: RefusedDowngrade())
        #expect(line(refused) == sentence + "; --allow-http-redirects allows the redirect, without encryption")
        #expect(
            line(UpstreamError(.invalidRedirect, "https://h/a redirects in a loop"))
                == "https://h/a redirects in a loop")
    }
}
