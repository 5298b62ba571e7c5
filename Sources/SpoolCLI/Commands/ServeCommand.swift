#if Tools
import ArgumentParser
import Foundation
import Spool
import SpoolHTTP
import SpoolProxy

/// `spool serve`: the proxy server, which serves media through the cache to any player.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve media through the cache to any player, over HTTP.",
        discussion: "“spool url URL” prints the URL for a player. With --origin, the server is a "
            + "reverse proxy for that origin, and uses its paths.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @OptionGroup var serving: ServingOptions
    @Option(help: ArgumentHelp("Rules for using stored responses without revalidation.", valueName: "policy"))
    var freshness = Freshness.http
    @Option(help: ArgumentHelp("Eviction policy.", valueName: "policy"))
    var eviction = Eviction.standard
    @Option(
        help: ArgumentHelp(
            "Evict media that has not been played for this long, such as 30d, unless it is pinned.", valueName: "time"
        ))
    var maxAge: DurationArgument?
    @Option(
        help: ArgumentHelp(
            "Leave this much free space on the volume, such as 5GB, regardless of the capacity.", valueName: "size")
    )
    var keepFree: ByteCount?
    @Option(
        help: ArgumentHelp(
            "The quota of a host, such as media.example.org=2GB; may be repeated.",
            valueName: "host=size"))
    var quota: [QuotaArgument] = []
    @Option(
        name: .customLong("max-connections-per-origin"),
        help: ArgumentHelp(
            "Maximum number of open connections to one origin (default: learned from the origin's rejections).",
            valueName: "count"))
    var maximumConnectionsPerOrigin: Int?

    /// The eviction policies, as values of the option.
    enum Eviction: String, ExpressibleByArgument, CaseIterable, Sendable {
        case standard, lru, largest, never

        var policy: EvictionPolicy {
            switch self {
            case .standard: .standard
            case .lru: .leastRecentlyUsed
            case .largest: .largestFirst
            case .never: .never
            }
        }
    }

    /// The freshness policies, as values of the option.
    enum Freshness: String, ExpressibleByArgument, CaseIterable, Sendable {
        case http, immutable, revalidate

        var policy: FreshnessPolicy {
            switch self {
            case .http: .http
            case .immutable: .immutable
            case .revalidate: .revalidate
            }
        }
    }

    func validate() throws {
        let hosts = quota.map { $0.host.lowercased() }
        if let twice = hosts.first(where: { host in hosts.count { $0 == host } > 1 }) {
            throw ValidationError("--quota specifies “\(twice)” more than once")
        }
        if serving.token != nil, serving.tokenFile != nil {
            throw ValidationError("give either --token or --token-file, not both")
        }
        if let count = maximumConnectionsPerOrigin, count < 1 {
            throw ValidationError("--max-connections-per-origin must be at least 1, not \(count)")
        }
        guard fetching.headers.isEmpty || serving.origin != nil else {
            throw ValidationError(
                "--header requires --origin, because otherwise the fields would be sent to every origin")
        }
    }

    func run() async throws {
        var configuration = try serving.configuration()
        do {
            try configuration.validate()
        } catch {
            throw ValidationError(error.description)
        }
        configuration.logger = options.serverLogger
        if serving.origin != nil { configuration.originFields = try await fetching.headerFields() }
        DescriptorLimit.raise()
        var transport = fetching.upstreamConfiguration
        transport.responseTimeout = max(transport.responseTimeout, configuration.limits.responseTimeout)
        let upstream = HTTPUpstream.standard(configuration.restricting(transport))
        let cache = try await options.openNow(upstream) { cache in
            cache.freshness = freshness.policy
            cache.eviction = eviction.policy
            cache.maximumAge = maxAge?.duration
            cache.minimumFreeSpace = keepFree?.bytes ?? 0
            cache.maximumOpenConnectionsPerOrigin = maximumConnectionsPerOrigin
            cache.evictionQuotas = quota.map { .host($0.host, $0.size.bytes) }
            configuration.configure(&cache)
        }
        let secret = (0..<4).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
        configuration.control = (secret, RemoteCommand.runner(on: cache))
        configuration.operatorSettings = operatorSettings(for: cache)
        try await options.use(cache, capacity: fetching.size.capacity) { [configuration] cache in
            let server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
            try await RunningServer.announce(server, in: cache)
            try Output.line("listening on \(server.listeningAddress)")
            // Output to a file or pipe may be stored, but the URL contains the token.
            if Output.isOutputTerminal, let page = server.pageAddress, let token = configuration.operatorSettings?.token
            {
                try Output.line("page: \(page)#token=\(token.text)")
            }
            Interruption.allow(seconds: 15)
            await CancellationWait.wait()
            await server.stop(within: .seconds(10))
        }
    }
}

extension ServeCommand {
    /// Returns the settings for the live page, with the token of the cache directory.
    ///
    /// - Returns: `nil` if the token can't be stored. In that case, the page can't change anything.
    private func operatorSettings(for cache: MediaCache) -> OperatorSettings? {
        let file = options.directory.appendingPathComponent("operator-token")
        do {
            return OperatorSettings(token: try OperatorToken.stored(in: file), settings: settings(of: cache))
        } catch {
            let cause = error.localizedDescription
            Output.remark(
                "warning: the live page can't change anything, because “\(file.path)” can't be used (\(cause))")
            return nil
        }
    }

    /// Returns the settings that the live page shows, without the current capacity. The page can't change values that
    /// the command line sets.
    private func settings(of cache: MediaCache) -> [OperatorSettings.Setting] {
        func source(_ isDefault: Bool) -> OperatorSettings.Setting.Source { isDefault ? .default : .commandLine }
        func seconds(_ duration: Duration) -> OperatorSettings.Setting.Value { .number(duration.components.seconds) }
        let hasCapacity = fetching.size.capacity != nil
        return [
            .init(
                "capacity", .none, hasCapacity ? .commandLine : cache.capacity == nil ? .default : .directory,
                editable: !hasCapacity, option: "--capacity"),
            .init(
                "eviction", .text(eviction.rawValue), source(eviction == .standard),
                choices: Eviction.allCases.map(\.rawValue), option: "--eviction"),
            .init(
                "freshness", .text(freshness.rawValue), source(freshness == .http),
                choices: Freshness.allCases.map(\.rawValue), option: "--freshness"),
            // If the command line restricts the origins, the page can't change them.
            .init(
                "allowedHosts", .list(serving.allowedHosts), source(serving.allowedHosts.isEmpty),
                editable: serving.allowedHosts.isEmpty && serving.origin == nil, option: "--allow-host"),
            .init(
                "maxAge", maxAge.map { seconds($0.duration) } ?? .none, source(maxAge == nil), option: "--max-age"),
            .init("keepFree", .number(keepFree?.bytes ?? 0), source(keepFree == nil), option: "--keep-free"),
            .init("quotas", .list(quota.map(\.text)), source(quota.isEmpty), option: "--quota"),
        ]
    }
}

/// A host and its quota, such as `media.example.org=2GB` or `[::1]=2GB`.
struct QuotaArgument: Sendable, ExpressibleByArgument {
    var host: String
    var size: ByteCount

    /// The host and the size in bytes, as the option accepts them.
    var text: String { "\(host.contains(":") ? "[\(host)]" : host)=\(size.bytes)" }

    /// Parses a host and a size. The result is `nil` if either is missing or invalid.
    init?(argument: String) {
        let parts = argument.split(separator: "=", omittingEmptySubsequences: false)
        guard parts.count == 2, let size = ByteCount(argument: String(parts[1])) else { return nil }
        let isAddress = parts[0].hasPrefix("[") && parts[0].hasSuffix("]")
        let host = isAddress ? parts[0].dropFirst().dropLast() : parts[0]
        guard !host.isEmpty, !host.contains(where: { isAddress ? "/@ []".contains($0) : "/:@ []".contains($0) }) else {
            return nil
        }
        (self.host, self.size) = (String(host), size)
    }
}

/// `spool url`: prints the server's URL for media, to pass to a player.
struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url", abstract: "Print the URL at which “spool serve” serves media.")

    @Argument(help: "The URL of the media.") var url: MediaURL
    @Option(help: ArgumentHelp("Address and port of the server.", valueName: "host:port"))
    var listen = ListenAddress.standard

    func run() throws {
        let host = listen.host.contains(":") ? "[\(listen.host)]" : listen.host
        do {
            try Output.line("http://\(host):\(listen.port)" + ForwardAddress.requestTarget(for: try OriginURL(url.url)))
        } catch let error as AddressError {
            throw CommandFailure(.usage, "the URL can't be requested through a server: \(error)")
        }
    }
}
#endif
