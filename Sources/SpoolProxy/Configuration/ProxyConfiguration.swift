#if Proxy
public import Foundation
package import HTTPTypes
public import Logging

/// How a ``ProxyServer`` listens, whom it lets in, and what it may ask for them.
public struct ProxyConfiguration: Sendable {
    /// The address to listen on, in figures, or `localhost`. For any but this machine's own, a ``token`` is needed.
    public var host = "127.0.0.1"
    /// The port; 0 picks one.
    public var port = 8787
    /// The origin that the server stands for: its `/path` is the origin's. Nil: each address names its own origin, as
    /// `/https/example.com/path`.
    public var origin: URL?
    /// Fields that ``origin`` is sent with each request, in place of what a client sends of them.
    package var originFields: HTTPFields = [:]
    /// The secret that each request must have, as the first part of its path (`/~TOKEN/…`) or as `Authorization: Bearer`.
    public var token: String?
    /// Whether a server for others than this machine needs no ``token``: one before an ``origin`` of its own, behind a
    /// balancer. What is for its owner alone is then on the ``admin`` address only.
    public var allowsAnyone = false
    /// Names by which clients may know the server, beside `localhost` and addresses in figures. A request for another host is
    /// refused, so that no page reaches the server by a name of its own.
    public var serverNames: [String] = []
    /// Origins that may be asked: `example.com`, `*.example.com`, `example.com:8080`. None: any that is on the internet, and
    /// for clients on this machine any at all.
    public var allowedHosts: [String] = []
    /// Pages that may read what the server sends, as `https://player.example`; for `Access-Control-Allow-Origin`.
    public var corsOrigins: [String] = []
    /// An address of its own for what is for the owner alone: metrics, and what is cached.
    public var admin: (host: String, port: Int)?
    /// The server's name in `Cache-Status`, to tell nodes apart.
    public var nodeName: String?
    /// Whether clients' `Cache-Control` is followed, so that they can pass by the cache; nil: only before an ``origin``.
    public var honoursRequestDirectives: Bool?
    /// A file that gets a line of JSON for each request; its queries are left out.
    public var accessLog: URL?
    /// How much clients may ask.
    public var limits = ProxyLimits()
    /// Threads that serve connections; 0: one for each core.
    public var threads = 0
    /// Whether the server begins to listen by itself when a URL is first asked of it, so that nobody has to start it. Not with an
    /// ``admin`` address.
    public var startsWhenAsked = false
    /// Whether a response waits for an origin that can't be reached as long as its client does, where it would else be refused
    /// or cut. For players that take neither as a reason to ask again.
    var waitsForOrigin = false
    /// The most bits per second that a variant of an HLS stream may need, by its peak: variants that need more are not listed
    /// to players, unless all do; then the one that needs least is. Nil: all are listed.
    ///
    /// A player measures how fast bytes come from this machine, not from the origin, and would choose too high.
    public var maximumBitRate: Int64?
    /// Whether keys of encrypted HLS streams are kept like other files. If not, each play asks their origin for them;
    /// what an ``HLSDownloader`` has brought is used all the same.
    public var keepsKeys = true
    /// What runs commands for this machine's owner, and the secret that opens the way to it: an address of its own on
    /// 127.0.0.1, beside ``host``. Nil: there is none.
    package var control: (secret: String, run: @Sendable ([String]) async -> CommandOutcome)?
    /// Known once the server listens.
    let ownPort = OwnPort()
    /// Where messages go.
    public var logger = Logger(label: "spool.proxy")

    /// A server on this machine for this machine.
    public init() {}
}
#endif
