package import Foundation

extension HTTPUpstream {
    /// How long an upstream waits, how far it follows redirects, and by which ways it goes.
    public struct Configuration: Sendable {
        /// Kinds of network that URLSession may use on Apple platforms; elsewhere all are the same.
        public struct NetworkAccess: OptionSet, Sendable {
            /// The bits of the kinds.
            public let rawValue: Int
            /// The kinds whose bits are set.
            public init(rawValue: Int) { self.rawValue = rawValue }

            /// A cellular network (`allowsCellularAccess`).
            public static let cellular = NetworkAccess(rawValue: 1)
            /// One that the system takes for expensive (`allowsExpensiveNetworkAccess`).
            public static let expensive = NetworkAccess(rawValue: 2)
            /// One in Low Data Mode (`allowsConstrainedNetworkAccess`).
            public static let constrained = NetworkAccess(rawValue: 4)
        }

        /// How long setting up a connection (name, TCP, TLS) may take; 10 seconds. URLSession has no such limit of its own:
        /// there the ``headTimeout`` alone counts.
        public var connectTimeout: Duration = .seconds(10)
        /// How long the head of a response may take, counted from when the request is handed to the transport, so with the
        /// time for a connection; 15 seconds, for each redirect anew.
        public var headTimeout: Duration = .seconds(15)
        /// How long a body may be silent while somebody waits for it (up to a quarter more); 15 seconds. Time in which
        /// nobody asks for the next chunk does not count: a held body is not a stalled one.
        public var idleTimeout: Duration = .seconds(15)
        /// Bytes a second below which a body counts as stalled; 1000, and 0 for no such limit. Measured over
        /// ``minimumRateTime`` in which somebody waited for the body all along.
        public var minimumRate = 1000
        /// How long a body is given to come at ``minimumRate``; 30 seconds.
        public var minimumRateTime: Duration = .seconds(30)
        /// The maximum number of redirects to follow for one request. The default is 20, as in browsers.
        ///
        /// A further redirect fails with ``UpstreamError/Code/redirects``. With 0 or less, every redirect fails.
        public var maximumRedirects = 20
        /// Whether a redirect from https to http is followed; otherwise it is an error, since what comes then could be
        /// anybody's.
        public var allowsRedirectsToHTTP = false
        /// Networks that may be used beside the plain ones; all of them.
        public var networkAccess: NetworkAccess = [.cellular, .expensive, .constrained]
        /// Where proxies are looked up: `https_proxy`, `http_proxy` (in lower case only), `all_proxy` and `no_proxy`, with
        /// curl's meaning; the process's environment, or `[:]` for no proxy. `AsyncHTTPClientUpstream` goes by it; URLSession
        /// asks the system.
        public var proxyEnvironment: [String: String] = ProcessInfo.processInfo.environment
        /// Whether a connection to this address and port may be used: asked by `AsyncHTTPClientUpstream` alone, with the
        /// address that a connection has been made to, before a request goes over it; so for each redirect, too. What is
        /// refused fails with ``RefusedAddress`` beneath.
        ///
        /// Under TLS a handshake has been tried by then. Of what goes through a proxy, only an address that stands in the
        /// URL is asked about: the proxy looks names up.
        package var allowsAddress: (@Sendable (IPAddress, Int) -> Bool)?
        /// Whether a redirect may be followed to a URL; nil: to any.
        package var allowsRedirect: (@Sendable (URL) -> Bool)?
        /// The clock of the head and idle timeouts.
        public var clock: any Clock<Duration> = ContinuousClock()
        /// The clock of the short time in which a cancelled request hands out bytes that have been sent already.
        var drainClock: any Clock<Duration> = ContinuousClock()

        /// The values named above.
        public init() {}
    }
}
