public import Foundation
public import Spool
import Synchronization

#if canImport(FoundationNetworking) && !StaticLinking
public import FoundationNetworking
#endif
#if AsyncHTTPClient && (os(Linux) || os(macOS))
public import NIOSSL
#endif

/// The default transport of the platform.
///
/// On Apple platforms it is `URLSessionUpstream`, which uses the system's proxies, cellular policy and trust. Elsewhere
/// it is `AsyncHTTPClientUpstream`, because URLSession has no back-pressure there. Without the package trait
/// `AsyncHTTPClient`, it is `URLSessionUpstream`. You can also create either transport directly.
public enum HTTPUpstream {
    /// Creates the platform's transport. Retain it, because its connections are reused until it is released.
    public static func standard(_ configuration: HTTPUpstream.Configuration = .init()) -> any Upstream {
        make(configuration)
    }

    private static func make(_ configuration: HTTPUpstream.Configuration) -> any Upstream & AnyObject {
        #if AsyncHTTPClient && os(Linux)
        AsyncHTTPClientUpstream(configuration)
        #else
        URLSessionUpstream(configuration)
        #endif
    }

    private struct Weak {
        weak let transport: (any Upstream & AnyObject)?
    }

    private static let lastShared = Mutex(Weak(transport: nil))

    /// Returns the transport shared by all caches that are created without their own transport. It exists as long as
    /// one of these caches uses it.
    ///
    /// Caches with the same directory can be joined only if they have the same transport.
    static func shared() -> any Upstream {
        lastShared.withLock { last in
            if let transport = last.transport { return transport }
            let transport = make(.init())
            last = Weak(transport: transport)
            return transport
        }
    }
}

extension HTTPUpstream {
    /// The timeouts, the handling of redirects, and the network routes of a transport.
    public struct Configuration: Sendable {
        /// The kinds of network that URLSession may use on Apple platforms. Elsewhere, they have no effect.
        public struct NetworkAccess: OptionSet, Sendable {
            /// The bit mask of the kinds.
            public let rawValue: Int
            /// Creates a set of kinds from a bit mask.
            public init(rawValue: Int) { self.rawValue = rawValue }

            /// A cellular network (`allowsCellularAccess`).
            public static let cellular = NetworkAccess(rawValue: 1)
            /// A network that the system considers expensive (`allowsExpensiveNetworkAccess`).
            public static let expensive = NetworkAccess(rawValue: 2)
            /// A network in Low Data Mode (`allowsConstrainedNetworkAccess`).
            public static let constrained = NetworkAccess(rawValue: 4)
        }

        /// The time limit for opening a connection (name resolution, TCP and TLS). The default is 10 seconds.
        ///
        /// URLSession has no such limit; only the ``responseTimeout`` applies there.
        public var connectTimeout: Duration = .seconds(10)
        /// The time limit for response headers. The default is 60 seconds, because some servers transcode first.
        ///
        /// The limit includes the time to open a connection, and restarts with each redirect.
        public var responseTimeout: Duration = .seconds(60)
        /// The time limit for the next bytes of a body. The default is 15 seconds. The actual limit is up to a quarter
        /// longer.
        ///
        /// Time during which no reader requests the next chunk does not count, so a paused body does not time out.
        public var idleTimeout: Duration = .seconds(15)
        /// The rate in bytes per second below which a body counts as stalled. The default is 1000; 0 disables the
        /// limit.
        ///
        /// The rate is measured over a period of ``lowSpeedTime`` during which a reader was always waiting for the
        /// body. The limit applies only if the body was at least twice as fast before. An eighth of it always applies.
        /// It does not apply to a body without `Content-Length`, such as a live stream.
        public var lowSpeedLimit = 1000
        /// The time over which ``lowSpeedLimit`` is measured. The default is 30 seconds.
        public var lowSpeedTime: Duration = .seconds(30)
        /// The maximum number of redirects to follow for one request. The default is 20, as in browsers.
        ///
        /// A further redirect fails with ``/Spool/UpstreamError/Code/invalidRedirect``. With 0 or less, every redirect
        /// fails.
        public var maximumRedirects = 20
        /// Whether a redirect from https to http is followed. The default is `false`, because the response to such a
        /// redirect is not protected.
        public var allowsInsecureRedirects = false
        /// The networks that may be used in addition to unrestricted networks. The default is all networks.
        public var networkAccess: NetworkAccess = [.cellular, .expensive, .constrained]
        /// The networks of ``networkAccess`` that preloads may use. The default is all networks except those in Low
        /// Data Mode.
        public var preloadNetworkAccess: NetworkAccess = [.cellular, .expensive]
        /// The networks of ``networkAccess`` that downloads may use. The default is all networks.
        public var downloadNetworkAccess: NetworkAccess = [.cellular, .expensive, .constrained]
        /// The value of `User-Agent`. The default, `nil`, sends `Spool/` followed by the version.
        ///
        /// A `User-Agent` field of the `MediaSource` replaces this value. An origin's statistics and rules may depend
        /// on `User-Agent`.
        public var userAgent: String?
        /// A function that returns the value of `Cookie` for a URL, or `nil` for none.
        ///
        /// The default, `nil`, does not send cookies.
        ///
        /// The function is called for each request and each redirect, from any thread, unless the `MediaSource` has a
        /// `Cookie` field. On Apple platforms, ``sendCookies(from:)`` sets this property.
        public var cookies: (@Sendable (URL) -> String?)?
        /// The environment variables that specify proxies, as for curl. The default is the process's environment.
        ///
        /// The variables are `https_proxy`, `http_proxy` (only in lower case), `all_proxy` and `no_proxy`. `[:]`
        /// disables proxies. `AsyncHTTPClientUpstream` uses them; URLSession uses the system's settings.
        public var proxyEnvironment: [String: String] = ProcessInfo.processInfo.environment
        /// A function that returns whether a connection to an address and port may be used; `nil` allows all
        /// connections.
        ///
        /// Only `AsyncHTTPClientUpstream` calls the function, with the address of a new connection, before it sends a
        /// request. The function is therefore also called for each redirect. A rejected request fails with an
        /// underlying ``RefusedAddress``.
        ///
        /// With TLS, the handshake has been attempted by then, unless ``hidesAddresses`` is true. With a proxy, only an
        /// address in the URL is checked, because the proxy resolves names.
        package var allowsAddress: (@Sendable (IPAddress, Int) -> Bool)?
        /// Whether the sender of a request must not learn anything about rejected addresses. The default is `false`.
        ///
        /// If `true`, names are also resolved and checked before a connection is opened, so that no rejected address
        /// receives a packet. The error is the same for a rejected address and for an unknown name. This requires a
        /// lookup for each host, at most once every 30 seconds.
        package var hidesAddresses = false
        /// A function that returns whether a redirect to a URL may be followed; `nil` allows all redirects.
        package var allowsRedirect: (@Sendable (URL) -> Bool)?
        /// The clock for the header and idle timeouts.
        public var clock: any Clock<Duration> = ContinuousClock()
        /// The clock for the short time during which a cancelled request delivers bytes that were already sent.
        var drainClock: any Clock<Duration> = ContinuousClock()

        /// Creates a configuration with the default values.
        public init() {}

        /// Returns the networks that requests with this purpose may use in addition to unrestricted networks.
        public func networkAccess(for purpose: UpstreamRequest.Purpose) -> NetworkAccess {
            switch purpose {
            case .playback: networkAccess
            case .preload: networkAccess.intersection(preloadNetworkAccess)
            case .download: networkAccess.intersection(downloadNetworkAccess)
            }
        }
    }
}

#if !StaticLinking
extension HTTPUpstream.Configuration {
    /// Adds cookies from a cookie store to requests. `AVPlayer` uses `HTTPCookieStorage.shared`.
    ///
    /// Cookies from responses are not added to the store.
    public mutating func sendCookies(from storage: HTTPCookieStorage) {
        cookies = { url in
            let fields = storage.cookies(for: url).map { HTTPCookie.requestHeaderFields(with: $0) }
            return fields?["Cookie"]
        }
    }
}

extension Upstream where Self == URLSessionUpstream {
    /// Creates a transport with URLSession: `MediaCache(directory: directory, upstream: .urlSession())`.
    ///
    /// - Parameters: See ``URLSessionUpstream/init(_:sessionConfiguration:)``.
    public static func urlSession(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral
    ) -> URLSessionUpstream {
        URLSessionUpstream(configuration, sessionConfiguration: sessionConfiguration)
    }

    #if canImport(Darwin)
    /// Creates a transport with URLSession for servers that have a pinned certificate or require a client certificate.
    ///
    /// - Parameters: See ``URLSessionUpstream/init(_:sessionConfiguration:onChallenge:)``.
    public static func urlSession(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral,
        onChallenge: @escaping URLSessionUpstream.ChallengeHandler
    ) -> URLSessionUpstream {
        URLSessionUpstream(configuration, sessionConfiguration: sessionConfiguration, onChallenge: onChallenge)
    }
    #endif
}
#endif

#if AsyncHTTPClient && (os(Linux) || os(macOS))
extension Upstream where Self == AsyncHTTPClientUpstream {
    /// Creates a transport with AsyncHTTPClient: `MediaCache(directory: directory, upstream: .asyncHTTPClient())`.
    ///
    /// - Parameters: See ``AsyncHTTPClientUpstream/init(_:tlsConfiguration:additionalTrustRoots:)``.
    public static func asyncHTTPClient(
        _ configuration: HTTPUpstream.Configuration = .init(),
        tlsConfiguration: TLSConfiguration = .makeClientConfiguration(), additionalTrustRoots: [URL] = []
    ) -> AsyncHTTPClientUpstream {
        AsyncHTTPClientUpstream(
            configuration, tlsConfiguration: tlsConfiguration, additionalTrustRoots: additionalTrustRoots)
    }
}
#endif

extension MediaCache {
    /// Creates a cache in `directory` that fetches over HTTP with the platform's transport; see
    /// ``/SpoolHTTP/HTTPUpstream``.
    ///
    /// The directory is opened or created when it is first needed. Creation never fails: if the directory can't be
    /// used, media plays without being cached, and an event reports why. A second cache for the same directory joins
    /// the first cache, as described for ``/Spool/MediaCache``.
    ///
    /// - Parameters:
    ///   - directory: The cache directory.
    ///   - capacity: The capacity; `nil` uses the capacity in `configuration`.
    ///   - configuration: All other settings.
    public convenience init(
        directory: URL, capacity: CacheCapacity? = nil, configuration: Configuration = Configuration()
    ) {
        var configuration = configuration
        configuration.capacity = capacity ?? configuration.capacity
        self.init(directory: directory, upstream: HTTPUpstream.shared(), configuration: configuration)
    }

    /// Creates a cache in memory that fetches over HTTP with the platform's transport.
    public static func inMemory(configuration: Configuration = Configuration()) -> MediaCache {
        inMemory(upstream: HTTPUpstream.standard(), configuration: configuration)
    }
}

/// The underlying error for a request to an address that ``HTTPUpstream.Configuration/allowsAddress`` rejects.
package struct RefusedAddress: Error {
    package init() {}
}

/// The underlying error for an unknown name or a rejected address, if ``HTTPUpstream.Configuration/hidesAddresses`` is
/// true.
struct HiddenAddress: Error {}
