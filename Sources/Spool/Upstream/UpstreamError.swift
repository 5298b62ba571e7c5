/// Says why an origin gave no response, or not all of it.
public struct UpstreamError: Error, CustomStringConvertible {
    /// The kind of failure; further codes may be added.
    public struct Code: Hashable, Sendable {
        let name: String

        /// No connection: name not found, refused, no route.
        public static let unreachable = Code(name: "unreachable")
        /// Nothing came within the connect, head or idle timeout.
        public static let timedOut = Code(name: "timedOut")
        /// The connection ended before the body did.
        public static let connectionLost = Code(name: "connectionLost")
        /// The server's certificate or the TLS handshake was refused; not retried.
        public static let untrusted = Code(name: "untrusted")
        /// More redirects than allowed, a loop, or a redirect to something that is not HTTP; not retried.
        public static let redirects = Code(name: "redirects")
        /// The request was given up by its caller.
        public static let cancelled = Code(name: "cancelled")
        /// Anything else the transport reports; not retried.
        public static let failed = Code(name: "failed")
    }

    /// The kind of failure.
    public var code: Code
    /// A sentence with scheme, host and path of what was asked, and the cause; never a query value or a credential.
    public var message: String
    /// What the transport reported.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(_ code: Code, _ message: String, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
    }

    /// Whether the same request may succeed a little later.
    public var isTransient: Bool { [.unreachable, .timedOut, .connectionLost].contains(code) }

    /// The sentence.
    public var description: String { message }
}
