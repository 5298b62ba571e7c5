public import Foundation

/// The reason why no response, or only part of a response, was received from an origin.
public struct UpstreamError: Error, CustomStringConvertible {
    /// The kind of failure. More codes may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        // All codes, each with a row in docs/errors.md. Apps use the numbers in statistics, so they never change and
        // are never reused.
        enum Name: Int, CaseIterable {
            case unreachable = 1, timedOut, connectionLost, untrustedServer, invalidRedirect, malformedResponse,
                cancelled, other, notPermitted, networkNotAllowed
        }

        let name: Name

        private init(_ name: Name) { self.name = name }

        /// All codes of this version.
        package static var allCases: [Code] { Name.allCases.map(Code.init) }

        /// The number of the code, which is also the `NSError.code` of the error. It is the same in every version.
        public var number: Int { name.rawValue }

        /// The name of the code, for logs.
        public var description: String { "\(name)" }

        /// No connection could be established, for example because the host was not found or refused the connection.
        public static let unreachable = Code(.unreachable)
        /// Nothing was received within the timeout for the connection, the headers or the body.
        public static let timedOut = Code(.timedOut)
        /// The connection ended before the body was complete.
        public static let connectionLost = Code(.connectionLost)
        /// The server's certificate or the TLS handshake was rejected. The request is not retried.
        public static let untrustedServer = Code(.untrustedServer)
        /// There were too many redirects, a loop, a redirect to a URL that does not use HTTP, or a forbidden redirect
        /// from https to http. The request is not retried.
        public static let invalidRedirect = Code(.invalidRedirect)
        /// The headers are not valid HTTP, or the framing of the body is unknown. The request is not retried.
        public static let malformedResponse = Code(.malformedResponse)
        /// The caller cancelled the request.
        public static let cancelled = Code(.cancelled)
        /// The transport reported an error of another kind. The request is not retried.
        public static let other = Code(.other)
        /// The system does not allow the transport to load the URL, for example because of App Transport Security. The
        /// request is not retried.
        public static let notPermitted = Code(.notPermitted)
        /// The app's configuration or the user's settings do not allow this request on the current network, for example
        /// in Low Data Mode. The request is retried, because the network may change.
        public static let networkNotAllowed = Code(.networkNotAllowed)
    }

    /// The kind of failure.
    public var code: Code
    /// A sentence with the scheme, host and path of the request, and the cause, without query values or credentials.
    public var message: String
    /// The error from the transport; `nil` if there is none.
    public var underlying: (any Error)?
    /// Whether the origin sent something other than an HTTP status line.
    package var lacksStatusLine = false

    /// Creates an error with a code and a message.
    public init(_ code: Code, _ message: String, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
    }

    /// Whether the same request may succeed if it is sent again later.
    public var isTransient: Bool { [.unreachable, .timedOut, .connectionLost, .networkNotAllowed].contains(code) }

    /// The ``message``.
    public var description: String { message }

    /// Returns the message to append to a string that already contains `redactedURL`.
    package func message(after redactedURL: String) -> String {
        message.hasPrefix(redactedURL + " ") ? String(message.dropFirst(redactedURL.count + 1)) : message
    }
}

/// Texts for users, and numbers for statistics.
///
/// The texts are in English. An app that supports other languages can select its own texts by ``UpstreamError/code``.
extension UpstreamError: LocalizedError, CustomNSError {
    /// A sentence that describes the error without a URL or a number, for an alert.
    public var errorDescription: String? {
        switch code.name {
        case .unreachable: "The server can’t be reached."
        case .timedOut: "The server did not respond in time."
        case .connectionLost: "The connection to the server was lost."
        case .untrustedServer: "The server can’t be trusted."
        case .invalidRedirect: "The server’s redirect can’t be followed."
        case .malformedResponse: "The server’s response can’t be understood."
        case .cancelled: "The request was cancelled."
        case .other: "The media could not be loaded."
        case .notPermitted: "The system does not allow a connection to the server."
        case .networkNotAllowed: "This request is not allowed on the current network."
        }
    }

    /// The ``message``: the URL without its query, and the cause.
    public var failureReason: String? { message }

    /// The action that a user can take; `nil` if there is none except contacting the developer.
    public var recoverySuggestion: String? {
        switch code.name {
        case .unreachable, .timedOut, .connectionLost: "Check the network connection and try again."
        case .networkNotAllowed: "Connect to Wi-Fi, or allow cellular data."
        case .untrustedServer: "Check the device’s date and time, and its network connection."
        case .invalidRedirect, .malformedResponse, .cancelled, .other, .notPermitted: nil
        }
    }

    /// The domain of the error as an `NSError`.
    public static var errorDomain: String { "Spool.UpstreamError" }

    /// The number of the code, which is the same in every version; see docs/errors.md.
    public var errorCode: Int { code.number }

    /// The cause and the ``message`` under Foundation's keys.
    public var errorUserInfo: [String: Any] { userInfo(underlying: underlying) }
}

extension UpstreamError {
    /// Converts an error from a source's resolver, if it is a network failure after which a retry may succeed.
    ///
    /// - Parameter redactedURL: The source's redacted URL, for messages.
    init?(resolving error: any Error, of redactedURL: String) {
        if let error = error as? UpstreamError, error.isTransient {
            self = error
            return
        }
        let (code, cause): (Code, String)
        switch (error as? URLError)?.code {
        case .notConnectedToInternet, .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .internationalRoamingOff,
            .dataNotAllowed, .callIsActive:
            (code, cause) = (.unreachable, "the network can't be reached")
        case .timedOut: (code, cause) = (.timedOut, "the request timed out")
        case .networkConnectionLost: (code, cause) = (.connectionLost, "the network connection was lost")
        default: return nil
        }
        self.init(code, "\(redactedURL) could not be resolved: \(cause)", underlying: error)
    }
}
