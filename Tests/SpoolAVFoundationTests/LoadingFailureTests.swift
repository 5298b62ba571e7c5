import Foundation
import Spool
import Testing

@testable import SpoolAVFoundation

@Suite("Errors for the player")
struct LoadingFailureTests {
    @Test("Each cause is converted to the error code that AVFoundation's own loading would report")
    func codes() {
        let cases: [(any Error, Int)] = [
            (CacheError(.originUnavailable, "gone"), NSURLErrorCannotConnectToHost),
            (CacheError(.originUnavailable, "busy", status: 503), NSURLErrorBadServerResponse),
            (
                CacheError(.originUnavailable, "slow", underlying: UpstreamError(.timedOut, "slow")),
                NSURLErrorTimedOut
            ),
            (
                CacheError(.originUnavailable, "cut", underlying: UpstreamError(.connectionLost, "cut")),
                NSURLErrorNetworkConnectionLost
            ),
            (CacheError(.originErrorStatus, "no", status: 401), NSURLErrorUserAuthenticationRequired),
            (CacheError(.originErrorStatus, "no", status: 403), NSURLErrorNoPermissionsToReadFile),
            (CacheError(.originErrorStatus, "no", status: 404), NSURLErrorFileDoesNotExist),
            (CacheError(.originErrorStatus, "no", status: 500), NSURLErrorBadServerResponse),
            (CacheError(.malformedResponse, "odd"), NSURLErrorCannotParseResponse),
            (CacheError(.resourceChanged, "new"), NSURLErrorResourceUnavailable),
            (CacheError(.storage, "disk"), NSURLErrorCannotOpenFile),
            (CacheError(.capacityExceeded, "full"), NSURLErrorCannotWriteToFile),
            (CacheError(.closed, "closed"), NSURLErrorCancelled),
            (UpstreamError(.untrustedServer, "who"), NSURLErrorServerCertificateUntrusted),
            (UpstreamError(.notPermitted, "http"), NSURLErrorAppTransportSecurityRequiresSecureConnection),
            (CancellationError(), NSURLErrorCancelled),
            (CocoaError(.fileNoSuchFile), NSURLErrorUnknown),
        ]
        for (cause, code) in cases { #expect(LoadingFailure.code(for: cause) == code, "\(cause)") }
    }

    @Test("An error's underlying error is its cause, and the error does not contain credentials")
    func contents() throws {
        let url = try #require(URL(string: "https://user:secret@host/a.mp3?token=secret"))
        let error = LoadingFailure.error(for: CacheError(.storage, "no space"), url: url)
        #expect(error.domain == NSURLErrorDomain && error.localizedDescription == "no space")
        #expect((error.userInfo[NSUnderlyingErrorKey] as? CacheError)?.code == .storage)
        let early = LoadingFailure.endedEarly(at: 5, url)
        #expect(early.localizedDescription.contains("https://host/a.mp3"))
        for error in [error, early, LoadingFailure.noAllowedType(of: url), LoadingFailure.error(for: nil, url: url)] {
            #expect(!"\(error) \(error.userInfo)".contains("secret"))
        }
    }
}
