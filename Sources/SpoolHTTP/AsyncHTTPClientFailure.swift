#if AsyncHTTPClient && (os(Linux) || os(macOS))
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
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

/// Says what an error of AsyncHTTPClient, SwiftNIO or BoringSSL means to whoever asked.
struct AsyncHTTPClientFailure {
    var error: any Error
    /// Whether the head had come; what is unknown is then taken for a lost connection.
    var isInBody: Bool

    init(_ error: any Error, isInBody: Bool) {
        self.error = error
        self.isInBody = isInBody
    }

    func upstreamError(_ name: String) -> UpstreamError {
        // One of our own names the URL itself.
        if let error = error as? UpstreamError {
            return UpstreamError(error.code, "\(name) \(error.message(after: name))", underlying: error.underlying)
        }
        let (code, cause) = reading
        return UpstreamError(code, "\(name) \(cause)", underlying: error)
    }

    private var reading: (UpstreamError.Code, String) {
        switch error {
        case let error as HTTPClientError: read(error)
        case let error as NIOConnectionError:
            (
                .unreachable,
                "cannot be reached: " + (error.connectionErrors.first.map { words($0.error) } ?? "name not found")
            )
        case is RefusedAddress: (.failed, "is at an address that may not be asked")
        case is SocketAddressError: (.unreachable, "cannot be reached: name not found")
        case let error as IOError: read(error)
        case is NIOSSLExtraError: (.untrusted, "has no certificate for this name")
        case let error as NIOSSLError: read(error)
        case is BoringSSLError: (.untrusted, "does not speak TLS as it should")
        case HTTPParserError.invalidEOFState:
            (.connectionLost, "closed the connection before its response was complete")
        case is ImpossibleStatus: (.malformed, "responded with a status that means nothing")
        case let error as HTTPParserError: (.malformed, "sent a response that is not HTTP: \(error)")
        case is ChannelError: (.connectionLost, "lost the connection")
        case _ where String(reflecting: type(of: error)).hasPrefix("NIOSOCKS."):
            (.unreachable, "cannot be reached: what is named as a SOCKS proxy does not respond like one")
        default: isInBody ? (.connectionLost, "broke off: \(error)") : (.failed, "failed: \(error)")
        }
    }

    private func read(_ error: HTTPClientError) -> (UpstreamError.Code, String) {
        switch error {
        case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout, .socksHandshakeTimeout,
            .httpProxyHandshakeTimeout:
            (.timedOut, "could not be connected to in time")
        case .readTimeout, .writeTimeout, .deadlineExceeded: (.timedOut, "took too long")
        case .remoteConnectionClosed, .uncleanShutdown, .bodyLengthMismatch:
            (.connectionLost, "closed the connection before its response was complete")
        case .cancelled, .requestStreamCancelled: (.cancelled, "was given up")
        default: (.failed, "cannot be asked: \(error.shortDescription)")
        }
    }

    /// The cause alone, such as “connection refused”: SwiftNIO's own sentence is about its calls and their numbers.
    private func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError:
            // strerror responds from constant strings for known codes: no data race to fear.
            strerror(error.errnoCode).map { String(cString: $0).lowercased() } ?? "for no reason that the system gives"
        case ChannelError.connectTimeout: "no response in time"
        case is ChannelError: "no connection"
        default: "\(error)"
        }
    }

    private func read(_ error: IOError) -> (UpstreamError.Code, String) {
        switch error.errnoCode {
        case ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENETDOWN, EADDRNOTAVAIL, EHOSTDOWN:
            (.unreachable, "cannot be reached: \(words(error))")
        case ETIMEDOUT: (.timedOut, "took too long")
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
#endif
