#if Proxy
public import Foundation
package import HTTPTypes
public import Logging
import Spool

/// The configuration of a ``ProxyServer``: its address, its access control, and the origins that it may access.
public struct ProxyConfiguration: Sendable {
    /// The IP address to listen on, or `localhost`. The default is 127.0.0.1. An address that other machines can reach
    /// requires a ``token``.
    public var host = "127.0.0.1"
    /// The port. The default is 8787. If the value is 0, the system selects a free port.
    public var port = 8787
    /// The origin whose paths the server serves (reverse mode).
    ///
    /// The default is `nil`: each path includes its own origin, as in `/https/example.com/path`.
    public var origin: URL?
    /// The fields that replace the client's fields in all requests to ``origin``.
    package var originFields: HTTPFields = [:]
    /// The secret that each request must include, as the first part of its path (`/~TOKEN/…`) or as
    /// `Authorization: Bearer`. The default is `nil`.
    public var token: String?
    /// Whether a server with an ``origin`` works without a ``token`` even if other machines can reach it, for example
    /// behind a load balancer.
    ///
    /// The live page is then available only at the ``admin`` address. The default is `false`.
    public var allowsUnauthenticatedClients = false
    /// The accepted host names of the server, in addition to `localhost` and IP addresses.
    ///
    /// Requests for other hosts are rejected, so that a web page cannot reach the server through the page's own host
    /// name. The default is empty.
    public var serverNames: [String] = []
    /// The allowed origins, such as `example.com`, `*.example.com` or `example.com:8080`.
    ///
    /// The default is empty. All origins on the internet are then allowed, and clients on this machine may access any
    /// origin.
    public var allowedHosts: [String] = []
    /// The load balancers that identify the clients of their connections or requests: IP addresses, or blocks such as
    /// `10.0.0.0/8`. The default is empty.
    ///
    /// Limits, access control and the log then use the identified client instead of the load balancer. The client is
    /// the last node in `Forwarded` (RFC 7239) or `X-Forwarded-For` that is not a trusted proxy. The fields are ignored
    /// in requests from other addresses. If ``usesProxyProtocol`` is `true`, a header at the start of the connection
    /// identifies the client instead.
    ///
    /// If there are trusted proxies, the server counts as reachable from other machines, even if it listens on
    /// 127.0.0.1. It therefore requires a ``token``, unless ``allowsUnauthenticatedClients`` is set.
    public var trustedProxies: [String] = []
    /// Whether connections from ``trustedProxies`` start with a header of HAProxy's PROXY protocol, version 1 or 2. The
    /// default is `false`.
    ///
    /// A connection from a trusted proxy is closed if it does not start with such a header. A connection from another
    /// address is closed if it starts with one. The property requires ``trustedProxies``, and does not apply to the
    /// ``admin`` address.
    public var usesProxyProtocol = false
    /// The origins of web pages that may read responses, such as `https://player.example`, for
    /// `Access-Control-Allow-Origin`. The default is empty.
    public var corsOrigins: [String] = []
    /// A separate address for the operator's metrics and live page. The default is `nil`.
    public var admin: (host: String, port: Int)?
    /// The name of the server in `Cache-Status`, to distinguish nodes. The default is `nil`.
    public var nodeName: String?
    /// Whether the server respects the `Cache-Control` field of requests, with which clients can bypass the cache.
    ///
    /// If the value is `nil`, the default, the server respects the field only if it has an ``origin``.
    public var honorsClientCacheControl: Bool?
    /// A file to which the server writes a line of JSON for each request, without queries. The default is `nil`.
    public var accessLog: URL?
    /// The limits for clients.
    public var limits = ProxyLimits()
    /// The number of threads that serve connections. The default, 0, uses one thread for each core.
    public var threadCount = 0
    /// Whether the server belongs to an app, and responds only to the URLs that it has created.
    var servesOnlyCreatedURLs: Bool { startsOnDemand && origin == nil }
    /// Whether the server starts listening when the app first gets a URL from it. The default is `false`.
    ///
    /// Such a server responds only to the URLs that it has created, and has no pages for operators. The setting cannot
    /// be combined with an ``admin`` address.
    public var startsOnDemand = false
    /// Whether a response waits for an unavailable origin as long as its client waits, instead of failing.
    ///
    /// Use this setting for players that do not retry after an error or a late response.
    var waitsForOrigin = false
    /// The maximum peak bit rate of listed HLS variants, in bits per second. The default, `nil`, lists all variants.
    ///
    /// If all variants exceed the limit, only the variant with the lowest bit rate is listed. A player measures the
    /// bandwidth to this machine, not to the origin. Without a limit, the player might choose variants that the origin
    /// cannot deliver in time.
    public var maximumBitRate: Int64?
    /// Whether keys of encrypted HLS streams are stored like other files. The default is `true`.
    ///
    /// Otherwise, each playback requests them from their origin. Keys that an `HLSDownloader` has stored are used in
    /// both cases.
    public var cachesKeys = true
    /// A separate address on 127.0.0.1 for the operator's commands, and the secret that it requires. The default is
    /// `nil`.
    package var control: (secret: String, run: @Sendable ([String]) async -> CommandOutcome)?
    /// The operator's token, and the settings that the live page shows. If the value is `nil`, the default, the page
    /// cannot change anything.
    package var operatorSettings: OperatorSettings?
    /// The ports of the server, which are known once it is listening.
    let serverPorts = ServerPorts()
    /// The allowed origins, if they have been changed on the live page.
    let hostOverrides = HostOverrides()
    /// The receiver of the server's log messages. The default is the same as for a cache, but with the label
    /// `spool.proxy`.
    public var logger = Logger.standard("spool.proxy")

    /// Creates the configuration of a server on this machine, for clients on this machine.
    public init() {}
}

/// The limits that a server applies to its clients: the size of headers, timeouts, and the number of connections.
public struct ProxyLimits: Sendable, Hashable {
    /// The maximum size of a request's first line and headers, in bytes. The default is 32 KiB.
    ///
    /// Larger requests are rejected with status 431, or with 414 if the first line alone is too long.
    public var maximumHeaderSize = 32 << 10
    /// The maximum time from the first to the last byte of the headers. The default is 30 seconds. Slower requests
    /// receive status 408.
    public var headerTimeout = Duration.seconds(30)
    /// The maximum time between two requests on a connection. The default is 75 seconds.
    public var idleTimeout = Duration.seconds(75)
    /// The maximum time that a client on another machine may stay connected without receiving response bytes or sending
    /// body bytes. After that time, the connection is closed. The default is 60 seconds.
    ///
    /// Time during which the client waits for the origin is not counted. A client on this machine, such as a paused
    /// player, may pause for any length of time.
    public var sendTimeout = Duration.seconds(60)
    /// The maximum time until a response starts. The default is 60 seconds, because some origins transcode first.
    ///
    /// If the response starts later, the client receives status 504, or 503 if the origin is known to delay the
    /// response deliberately. For AVPlayer, whose user agent starts with `AppleCoreMedia/`, the limit is at most 2
    /// seconds. AVPlayer treats a later response as a failure. It sends the request again after a 504, and then
    /// receives the stored response.
    ///
    /// The transport of the cache has its own limit, `HTTPUpstream.Configuration.responseTimeout`.
    public var responseTimeout = Duration.seconds(60)
    /// The maximum number of connections. The default is 20,000. Further connections receive status 503.
    public var maximumConnections = 20_000
    /// The maximum number of connections from one client on another machine. The default is 256. Further connections
    /// receive status 503. The limit must be at least 1.
    ///
    /// IPv6 addresses with the same first 64 bits count as one client. If header fields from one of the
    /// ``ProxyConfiguration/trustedProxies`` identify the client, its concurrent requests are limited instead of its
    /// connections. The connections of a trusted proxy are not limited.
    public var maximumConnectionsPerClient = 256

    /// Creates the default limits.
    public init() {}

    /// The maximum of ``responseTimeout`` for AVPlayer.
    static let avPlayerResponseTimeout = Duration.seconds(2)

    /// Returns the time within which the response to a request must start.
    func responseTimeout(for request: RequestHead) -> Duration {
        let isAVPlayer = request.fields["user-agent"]?.hasPrefix("AppleCoreMedia/") ?? false
        return isAVPlayer ? min(responseTimeout, Self.avPlayerResponseTimeout) : responseTimeout
    }
}

/// An error that states why a server could not start.
public struct ProxyError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public struct Code: Sendable, Hashable {
        private enum Value: Sendable, Hashable { case configuration, address }
        private let value: Value

        /// The configuration is inconsistent, or the address requires other settings.
        public static var configuration: Code { Code(value: .configuration) }
        /// The server cannot listen on the address.
        public static var address: Code { Code(value: .address) }
    }

    /// The kind of failure.
    public let code: Code
    /// A sentence that names the address or the value, and states the cause.
    public let description: String
    /// The error that caused the failure, or `nil` if there is none.
    public let underlying: (any Error)?

    init(_ code: Code, _ description: String, underlying: (any Error)? = nil) {
        self.code = code
        self.description = description
        self.underlying = underlying
    }
}

/// A command line that a server runs for another process.
package struct CommandCall: Codable, Sendable {
    /// The arguments after the command's name.
    package var arguments: [String]

    /// Creates a command line.
    package init(arguments: [String]) { self.arguments = arguments }
}

/// The output and the exit status of a command that a server ran for another process.
package struct CommandOutcome: Codable, Sendable, Hashable {
    /// The standard output.
    package var output: String
    /// The standard error.
    package var errors: String
    /// The exit status.
    package var status: Int32

    /// Creates an outcome.
    package init(output: String, errors: String, status: Int32) {
        self.output = output
        self.errors = errors
        self.status = status
    }
}
#endif
