#if AsyncHTTPClient
import Foundation
import Spool
import Testing

@testable import SpoolHTTP

@Suite("TLS handshake failures")
struct HandshakeFailureTests {
    private static func description(_ reasons: String...) -> String {
        let errors = reasons.map {
            "Error: 268435581 error:1000007d:SSL routines:OPENSSL_internal:\($0) at /home/me/.build/ssl/handshake.cc:320"
        }
        return "handshakeFailed(NIOSSL.BoringSSLError.sslError([\(errors.joined(separator: ", "))]))"
    }

    @Test(
        "The reason for a failed TLS handshake is a phrase without the library's file names and line numbers",
        arguments: [
            (description("CERTIFICATE_VERIFY_FAILED"), "is not trusted: its certificate can't be verified"),
            (description("WRONG_VERSION_NUMBER"), "does not speak TLS"),
            (description("TLSV1_ALERT_PROTOCOL_VERSION"), "is not trusted: it does not speak TLS 1.2 or later"),
            (
                description("SSLV3_ALERT_HANDSHAKE_FAILURE", "HANDSHAKE_FAILURE_ON_CLIENT_HELLO"),
                "is not trusted: the TLS handshake failed: sslv3 alert handshake failure"
            ),
            ("noSuchFilter /home/me", "is not trusted: the TLS handshake failed"),
        ])
    func words(_ description: String, _ words: String) {
        let reading = HandshakeFailure(description: description).reading
        #expect(reading.0 == .untrustedServer && reading.1 == words)
    }

    @Test("A connection that is closed during the handshake counts as lost, so that the request can be retried")
    func cutOff() {
        let text = "handshakeFailed(NIOSSL.BoringSSLError.sslError([Error:  EOF during handshake]))"
        let reading = HandshakeFailure(description: text).reading
        #expect(reading.0 == .connectionLost && reading.1 == "closed the connection during the TLS handshake")
    }
}
#endif
