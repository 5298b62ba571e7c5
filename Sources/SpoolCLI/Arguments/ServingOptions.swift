#if Tools
import ArgumentParser
import Foundation
import SpoolProxy

/// The options of `spool serve` for addresses, access control and logging.
struct ServingOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Address and port to listen on; port 0 selects a free one.", valueName: "host:port"))
    var listen = ListenAddress.standard
    @Option(help: ArgumentHelp("The origin to serve in reverse mode.", valueName: "url"))
    var origin: MediaURL?
    @Option(
        help: ArgumentHelp(
            "A secret that every request must contain, at the start of its path (/~TOKEN/…) or as a Bearer token.",
            discussion: "Other users can read command lines; --token-file hides the token."))
    var token: String?
    @Option(
        name: .customLong("token-file"), help: ArgumentHelp("A file with the token.", valueName: "file"),
        completion: .file())
    var tokenFile: String?
    @Flag(name: .customLong("no-token"), help: "Serve other machines without a token; requires --origin.")
    var isOpen = false
    @Option(
        name: .customLong("allow-host"),
        help: ArgumentHelp(
            "A host that clients may request, such as *.example.com; may be repeated.", valueName: "pattern"))
    var allowedHosts: [String] = []
    @Option(
        name: .customLong("cors-origin"),
        help: ArgumentHelp("The origin of web pages that may read responses; may be repeated.", valueName: "origin"))
    var corsOrigins: [String] = []
    @Option(
        name: .customLong("server-name"),
        help: ArgumentHelp("An additional host name of the server; may be repeated.", valueName: "host"))
    var serverNames: [String] = []
    @Option(
        name: .customLong("trusted-proxy"),
        help: ArgumentHelp(
            "Addresses of load balancers that send Forwarded or X-Forwarded-For, such as 10.0.0.0/8; may be repeated.",
            valueName: "address"))
    var trustedProxies: [String] = []
    @Flag(
        name: .customLong("proxy-protocol"),
        help: "Expect the PROXY protocol on connections from trusted proxies; requires --trusted-proxy.")
    var usesProxyProtocol = false
    @Option(
        name: .customLong("max-connections-per-client"),
        help: ArgumentHelp("Maximum number of connections from one client on another machine.", valueName: "count"))
    var maximumConnectionsPerClient = ProxyLimits().maximumConnectionsPerClient
    @Option(
        name: .customLong("response-timeout"),
        help: ArgumentHelp(
            "Maximum time until an origin's response starts, such as 90s; at most 2 s for AVPlayer.",
            valueName: "time"))
    var responseTimeout = DurationArgument(seconds: 60)
    @Option(
        name: .customLong("request-directives"),
        help: ArgumentHelp(
            "Follow or ignore Cache-Control and Pragma in requests (default: ignore, but follow with --origin).",
            valueName: "rule"))
    var requestDirectives: RequestDirectivesRule?
    @Option(help: ArgumentHelp("Separate address for the live page and metrics.", valueName: "host:port"))
    var admin: ListenAddress?
    @Option(
        name: .customLong("access-log"),
        help: ArgumentHelp("A file to which a line is appended for each request.", valueName: "file"),
        completion: .file())
    var accessLog: String?
    @Option(help: ArgumentHelp("The server's name in Cache-Status.", valueName: "name"))
    var node: String?

    /// Returns the configuration of the server.
    ///
    /// - Throws: ``CommandFailure`` with code `headerFile` if the token file cannot be read.
    func configuration() throws -> ProxyConfiguration {
        var configuration = ProxyConfiguration()
        configuration.host = listen.host
        configuration.port = listen.port
        configuration.origin = origin?.url
        configuration.token = try token ?? tokenFile.map { try Self.token(in: $0) }
        configuration.allowsUnauthenticatedClients = isOpen
        configuration.allowedHosts = allowedHosts
        configuration.corsOrigins = corsOrigins
        configuration.serverNames = serverNames
        configuration.honorsClientCacheControl = requestDirectives.map { $0 == .follow }
        configuration.trustedProxies = trustedProxies
        configuration.usesProxyProtocol = usesProxyProtocol
        configuration.limits.maximumConnectionsPerClient = maximumConnectionsPerClient
        configuration.limits.responseTimeout = responseTimeout.duration
        configuration.admin = admin.map { ($0.host, $0.port) }
        configuration.accessLog = accessLog.map { URL(fileURLWithPath: $0) }
        configuration.nodeName = node
        return configuration
    }

    private static func token(in path: String) throws -> String {
        do {
            let text = try String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
        } catch {
            throw CommandFailure(.headerFile, "the token file “\(path)” can't be read: \(error.localizedDescription)")
        }
    }
}

/// The ways to treat `Cache-Control` in requests, as values of an option.
enum RequestDirectivesRule: String, ExpressibleByArgument, CaseIterable, Sendable {
    case follow, ignore
}

/// A host and a port, in the format of an option's value.
struct ListenAddress: ExpressibleByArgument, Sendable, Hashable {
    var host: String
    var port: Int

    static let standard = ListenAddress(host: "127.0.0.1", port: 8787)

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    init?(argument: String) {
        guard let colon = argument.lastIndex(of: ":"), let port = UInt16(argument[argument.index(after: colon)...])
        else {
            return nil
        }
        let name = argument[..<colon]
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        guard !name.isEmpty, isBracketed || !name.contains(":") else { return nil }
        host = isBracketed ? String(name.dropFirst().dropLast()) : String(name)
        self.port = Int(port)
    }

    var defaultValueDescription: String { "\(host):\(port)" }
}

/// A duration, such as `90s`, `30m`, `12h` or `30d`.
struct DurationArgument: Hashable, Sendable, ExpressibleByArgument {
    var duration: Duration

    /// Creates a duration for the default of an option.
    init(seconds: Int) { duration = .seconds(seconds) }

    var defaultValueDescription: String { "\(duration.components.seconds)s" }

    /// Parses a positive number with its unit. The result is `nil` for other text, and for durations over a hundred
    /// years.
    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = argument.last.flatMap({ units[$0] }), let number = Double(argument.dropLast()),
            argument.utf8.first.map({ (48...57).contains($0) }) == true, number > 0, number * unit <= 100 * 366 * 86_400
        else { return nil }
        duration = .seconds(number * unit)
    }
}
#endif
