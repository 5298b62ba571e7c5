/// Says why an origin gave no response, or not all of it.
public struct UpstreamError: Error, CustomStringConvertible {
    /// The kind of failure; further codes may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        // Every code, once: docs/errors.md has a row for each. The numbers get into apps' statistics: none is changed or
        // given again.
        enum Name: Int, CaseIterable {
            case unreachable = 1, timedOut, connectionLost, untrusted, redirects, malformed, cancelled, failed
        }

        let name: Name

        private init(_ name: Name) { self.name = name }

        /// Every code of this version.
        package static var allCases: [Code] { Name.allCases.map(Code.init) }

        /// The code's number, the same in every version: what `NSError.code` says of the error.
        public var number: Int { name.rawValue }

        /// The code's name, for logs.
        public var description: String { "\(name)" }

        /// No connection: name not found, refused, no route.
        public static let unreachable = Code(.unreachable)
        /// Nothing came within the connect, head or idle timeout.
        public static let timedOut = Code(.timedOut)
        /// The connection ended before the body did.
        public static let connectionLost = Code(.connectionLost)
        /// The server's certificate or the TLS handshake was refused; not retried.
        public static let untrusted = Code(.untrusted)
        /// More redirects than allowed, a loop, a redirect to something that is not HTTP, or one from https to http
        /// that is not allowed; not retried.
        public static let redirects = Code(.redirects)
        /// A head that means nothing in HTTP, or a body framed in a way that is not understood; not retried.
        public static let malformed = Code(.malformed)
        /// The request was given up by its caller.
        public static let cancelled = Code(.cancelled)
        /// Anything else the transport reports; not retried.
        public static let failed = Code(.failed)
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

    /// The sentence, to follow one that has named `address` already.
    package func message(after address: String) -> String {
        message.hasPrefix(address + " ") ? String(message.dropFirst(address.count + 1)) : message
    }
}
