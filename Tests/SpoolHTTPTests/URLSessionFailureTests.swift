import Foundation
import Spool
import Testing

@testable import SpoolHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Errors from URLSession")
struct URLSessionFailureTests {
    @Test("E260: rejections by App Transport Security and responses that can't be parsed have separate error codes")
    func codes() {
        let cases: [(URLError.Code, UpstreamError.Code)] = [
            (.appTransportSecurityRequiresSecureConnection, .notPermitted),
            (.cannotParseResponse, .malformedResponse),
            (.cannotConnectToHost, .unreachable),
            (.secureConnectionFailed, .untrustedServer),
            (.unsupportedURL, .other),
        ]
        for (code, expected) in cases {
            let error = UpstreamError(ofURLSession: URLError(code), "http://host/a", isInBody: false)
            #expect(error.code == expected && error.message.hasPrefix("http://host/a "))
            #expect(expected == .unreachable || !error.isTransient)
        }
    }
}
