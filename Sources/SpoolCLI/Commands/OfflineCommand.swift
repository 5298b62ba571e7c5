#if Tools
import ArgumentParser
import ByteRanges
import Spool

/// `spool offline`: named sets of media that are stored for playback without a network.
struct OfflineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offline", abstract: "Manage named sets of media downloaded for offline playback.",
        discussion: "Media in a set is pinned until the set is released.",
        subcommands: [OfflineAddCommand.self, OfflineListCommand.self, OfflineRemoveCommand.self])

    @OptionGroup var options: CacheOptions
}

/// `spool offline add`: downloads and pins media.
struct OfflineAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add media to a set and fetch all of it; without URLs, resume the set.",
        discussion: """
            Interrupted downloads are resumed. If some media can't be fetched, the rest is still fetched, and the exit \
            status is 1. The scheme, host and path of a URL are stored; its query is stored only with --save-query. \
            Otherwise, give the URL again to resume. For an HLS stream, the highest variant is fetched completely.
            """)

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The set's name.") var set: String
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []
    @Option(
        help: ArgumentHelp("A file with one URL on each line, or - for standard input.", valueName: "list"),
        completion: .file())
    var file: String?
    @Flag(help: "Store the query of each URL, so that the download can be resumed by the set's name alone.")
    var saveQuery = false

    func validate() throws {
        if set.isEmpty { throw ValidationError("the argument <set> is empty: give the set's name") }
        if MediaURL(argument: set) != nil {
            throw ValidationError("<set> is a URL: give the set's name before the URLs")
        }
    }

    func run() async throws {
        var urls = urls
        if let file {
            guard CacheOptions.serverCache == nil else {
                throw CommandFailure(.usage, "while a server is using the cache, give URLs instead of --file")
            }
            urls += try await InterruptibleExecutor(name: "spool.list").run { try URLList(path: file) }.urls
        }
        let sources = try await fetching.sources(urls.map(\.url))
        let (items, failures, warnings) = try await options.withCache(
            capacity: fetching.size.capacity, upstream: fetching.upstream()
        ) { cache in
            // A server's cache stays open afterward, and the server writes its own warnings.
            let warnings = CacheOptions.serverCache == nil ? Warnings(of: cache) : nil
            let session = OfflineSession(cache, set: set, isQuiet: options.json)
            let failures = try await session.run(sources, savingQuery: saveQuery)
            return (try await cache.downloads.set(set)?.items ?? [], failures, warnings)
        }
        await warnings?.end()
        if options.json { try Output.json(items.map { OfflineReport($0, in: set) }) }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }
}

/// `spool offline list`: lists the sets, and the missing parts of their media.
struct OfflineListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the media in sets and how much of it is stored, even while another process uses the cache.",
        discussion: "With a set's name, the exit status is 1 if some of its media is incomplete.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The set's name; without it, all sets are listed.") var set: String?

    func run() async throws {
        var sets: [DownloadSet] = []
        do {
            sets = try await Downloads.inspect(options.directory, encryptionKey: options.keys.key())
        } catch let error as CacheError where error.code == .notStored {
            options.reportMissingCache()
        }
        if let set {
            sets = sets.filter { $0.name == set }
            if sets.isEmpty { throw OfflineReport.noSet(set) }
        }
        let reports = sets.flatMap { set in set.items.map { OfflineReport($0, in: set.name) } }
        if options.json { try Output.json(reports) } else { for report in reports { try Output.line(report.text) } }
        let missing = sets.flatMap(\.missing)
        guard let set, !missing.isEmpty else { return }
        let count = "\(missing.count) of \(reports.count.counted("file"))"
        throw CommandFailures(all: [
            AdvisedError(
                .incomplete, "\(count) in the set “\(set.shown)” \(missing.count == 1 ? "is" : "are") not complete",
                advice: "“spool offline add” fetches the rest")
        ])
    }
}

/// `spool offline rm`: releases a set, or some of its media.
struct OfflineRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Release a set, or media in it. Released media may be evicted.",
        discussion: "Media stays pinned if another set contains it. To free space immediately, use “spool rm”.")

    struct Report: Encodable, Sendable {
        var set: String
        var removed: [String]
    }

    @OptionGroup var options: CacheOptions
    @Argument(help: "The set's name.") var set: String
    @Argument(help: "The URLs of the media; without URLs, the whole set.") var urls: [MediaURL] = []

    func run() async throws {
        let outcome = try await options.withExistingCache { cache -> (removed: [String], failures: [any Error]) in
            let downloads = cache.downloads
            guard let found = try await downloads.set(set) else { return ([], [OfflineReport.noSet(set)]) }
            guard !urls.isEmpty else {
                try await downloads.release(set)
                return (found.items.map(\.redactedURL), [])
            }
            var removed: [String] = []
            var failures: [any Error] = []
            for source in urls.map({ MediaSource(url: $0.url) }) {
                if try await downloads.remove(source, from: set) {
                    removed.append(source.redactedURL)
                } else {
                    failures.append(
                        AdvisedError(
                            .notStored, "the set “\(set.shown)” does not contain \(source.redactedURL)",
                            advice: OfflineReport.listAdvice))
                }
            }
            return (removed, failures)
        }
        let (removed, failures) = outcome ?? ([], [OfflineReport.noSet(set)])
        if options.json {
            try Output.json(Report(set: set, removed: removed))
        } else {
            for address in removed { try Output.line("released \(address)") }
        }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }
}
#endif
