import ArgumentParser
import Foundation
import Spool
import SpoolHTTP
import SpoolProxy

/// `spool serve`: the cache for any player, over HTTP on this machine.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve media through the cache to any player, over HTTP.",
        discussion: "“spool url URL” prints the address to hand to a player. With --origin, the server stands for that "
            + "origin: its paths are the origin's.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @OptionGroup var doors: ServingOptions
    @Option(help: ArgumentHelp("When what is stored may be used without asking.", valueName: "policy"))
    var freshness = Freshness.http
    @Option(help: ArgumentHelp("What goes first when room is needed.", valueName: "policy"))
    var eviction = Eviction.standard
    @Option(
        help: ArgumentHelp(
            "How long what nobody plays is kept, such as 12h or 30d; pinned media stays.", valueName: "time"))
    var maxAge: AgeArgument?
    @Option(
        help: ArgumentHelp("What is to stay free on the volume, such as 5GB, whatever the capacity.", valueName: "size")
    )
    var keepFree: ByteCount?
    @Option(
        help: ArgumentHelp(
            "The most that is kept of one host, such as media.example.org=2GB; may be given more than once.",
            valueName: "host=size"))
    var quota: [QuotaArgument] = []

    /// The policies, as they are typed.
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

    /// The policies, as they are typed.
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
            throw ValidationError("--quota has “\(twice)” more than once")
        }
        if doors.token != nil, doors.tokenFile != nil {
            throw ValidationError("give one of --token and --token-file")
        }
        guard fetching.headers.isEmpty || doors.origin != nil else {
            throw ValidationError(
                "--header needs --origin: whose address names any origin would send it to all of them")
        }
    }

    func run() async throws {
        var configuration = try doors.configuration()
        if doors.origin != nil { configuration.originFields = try await fetching.headerFields() }
        DescriptorLimit.raise()
        let upstream = HTTPUpstream.standard(configuration.guarding(fetching.upstreamConfiguration))
        let cache = try await options.openNow(upstream) { cache in
            cache.freshness = freshness.policy
            cache.eviction = eviction.policy
            cache.maximumAge = maxAge?.duration
            cache.minimumFreeSpace = keepFree?.bytes ?? 0
            cache.quotas = quota.map { .host($0.host, $0.size.bytes) }
            configuration.prepare(&cache)
        }
        let secret = (0..<4).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
        configuration.control = (secret, LentCommand.runner(on: cache))
        try await options.use(cache, capacity: fetching.room.capacity) { [configuration] cache in
            let server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
            try await HoldingServer.announce(server, in: cache)
            try Output.line("listening on \(server.listeningAddress)")
            Interruption.allow(seconds: 15)
            await Forever.wait()
            await server.stop(within: .seconds(10))
        }
    }
}
