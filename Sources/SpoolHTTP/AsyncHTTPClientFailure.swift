#if AsyncHTTPClient && (os(Linux) || os(macOS))
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import Spool

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The conversion of an error from AsyncHTTPClient, SwiftNIO or BoringSSL into an ``UpstreamError``.
struct AsyncHTTPClientFailure {
    var error: any Error
    /// Whether the headers had been received. Unknown errors then count as a lost connection.
    var isInBody: Bool

    init(_ error: any Error, isInBody: Bool) {
        self.error = error
        self.isInBody = isInBody
    }

    func upstreamError(_ name: String) -> UpstreamError {
        // Errors from this package already name the URL.
        if var error = error as? UpstreamError {
            error.message = "\(name) \(error.message(after: name))"
            return error
        }
        let (code, cause) = reading
        var failure = UpstreamError(code, "\(name) \(cause)", underlying: error)
        failure.lacksStatusLine = lacksStatusLine
        return failure
    }

    /// Whether the parser has rejected the status line.
    private var lacksStatusLine: Bool {
        switch error as? HTTPParserError {
        case .invalidConstant, .invalidVersion, .invalidStatus: !isInBody
        default: false
        }
    }

    private var reading: (UpstreamError.Code, String) {
        switch error {
        case let error as HTTPClientError: read(error)
        case let error as NIOConnectionError:
            (
                .unreachable,
                "cannot be reached: " + (error.connectionErrors.first.map { words($0.error) } ?? "name not found")
            )
        case is RefusedAddress: (.other, "has an address that is not allowed")
        case is HiddenAddress: (.unreachable, "cannot be reached: its host has no address that may be used")
        case is SocketAddressError: (.unreachable, "cannot be reached: name not found")
        case let error as IOError: read(error)
        case is NIOSSLExtraError: (.untrustedServer, "has no certificate for this name")
        case let error as NIOSSLError: read(error)
        case is BoringSSLError: (.untrustedServer, "violated the TLS protocol")
        case HTTPParserError.invalidEOFState:
            (.connectionLost, "closed the connection before its response was complete")
        case is ImpossibleStatus: (.malformedResponse, "responded with an invalid status code")
        case let error as HTTPParserError: (.malformedResponse, "sent a response that is not HTTP: \(error)")
        case is ChannelError: (.connectionLost, "lost the connection")
        case _ where String(reflecting: type(of: error)).hasPrefix("NIOSOCKS."):
            (.unreachable, "cannot be reached: the SOCKS proxy did not establish a connection")
        case let error as NIOHTTP2Errors.StreamClosed where Self.mayBeRetried(error.errorCode):
            (.connectionLost, "closed the connection before its response was complete")
        case is NIOHTTP2Errors.NoSuchStream: (.connectionLost, "lost the connection")
        default: isInBody ? (.connectionLost, "lost the connection: \(error)") : (.other, "failed: \(error)")
        }
    }

    /// Returns whether an origin closes a stream with this code for a reason other than the request (RFC 9113 §6.8). An
    /// example is a limited number of requests on the connection.
    private static func mayBeRetried(_ code: HTTP2ErrorCode) -> Bool {
        [.noError, .cancel, .refusedStream, .internalError, .enhanceYourCalm].contains(code)
    }

    private func read(_ error: HTTPClientError) -> (UpstreamError.Code, String) {
        switch error {
        case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout, .socksHandshakeTimeout,
            .httpProxyHandshakeTimeout:
            (.timedOut, "timed out while connecting")
        case .readTimeout, .writeTimeout, .deadlineExceeded: (.timedOut, "timed out")
        case .remoteConnectionClosed, .uncleanShutdown, .bodyLengthMismatch:
            (.connectionLost, "closed the connection before its response was complete")
        case .cancelled, .requestStreamCancelled: (.cancelled, "was cancelled")
        default: (.other, "cannot be requested: \(error.shortDescription)")
        }
    }

    /// Returns only the cause, such as “connection refused”. SwiftNIO's own message contains system calls and error
    /// numbers.
    private func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError:
            // For known codes, strerror returns constant strings, so there is no data race.
            strerror(error.errnoCode).map { String(cString: $0).lowercased() } ?? "unknown error"
        case ChannelError.connectTimeout: "no response in time"
        case is ChannelError: "no connection"
        default: "\(error)"
        }
    }

    private func read(_ error: IOError) -> (UpstreamError.Code, String) {
        switch error.errnoCode {
        case ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENETDOWN, EADDRNOTAVAIL, EHOSTDOWN:
            (.unreachable, "cannot be reached: \(words(error))")
        case ETIMEDOUT: (.timedOut, "timed out")
        default: (.connectionLost, "lost the connection: \(words(error))")
        }
    }

    private func read(_ error: NIOSSLError) -> (UpstreamError.Code, String) {
        switch error {
        case .uncleanShutdown: (.connectionLost, "closed the connection before its response was complete")
        default: HandshakeFailure(description: "\(error)").reading
        }
    }
}

/// A failed TLS handshake, parsed from BoringSSL's error description.
///
/// BoringSSL's own text contains line numbers and build paths of its source files.
struct HandshakeFailure {
    /// BoringSSL's reasons, such as `CERTIFICATE_VERIFY_FAILED`, in order.
    let reasons: [String]
    private let isCutOff: Bool

    /// Parses the description of an error.
    init(description: String) {
        reasons = description.matches(of: /OPENSSL_internal:([A-Z0-9_]+)/).map { String($0.1) }
        isCutOff = reasons.isEmpty && description.contains("EOF during handshake")
    }

    /// The code of the error, and the text that follows the URL in a message.
    var reading: (UpstreamError.Code, String) {
        if isCutOff { return (.connectionLost, "closed the connection during the TLS handshake") }
        if reasons.contains("CERTIFICATE_VERIFY_FAILED") {
            return (.untrustedServer, "is not trusted: its certificate can't be verified")
        }
        if reasons.contains("WRONG_VERSION_NUMBER") || reasons.contains("HTTP_REQUEST") {
            return (.untrustedServer, "does not speak TLS")
        }
        if reasons.contains(where: { $0.hasSuffix("PROTOCOL_VERSION") || $0 == "UNSUPPORTED_PROTOCOL" }) {
            return (.untrustedServer, "is not trusted: it does not speak TLS 1.2 or later")
        }
        let words = reasons.first.map { ": " + $0.lowercased().replacing("_", with: " ") } ?? ""
        return (.untrustedServer, "is not trusted: the TLS handshake failed\(words)")
    }
}
#endif
