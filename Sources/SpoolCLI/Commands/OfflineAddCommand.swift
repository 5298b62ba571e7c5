import ArgumentParser
import Spool

/// `spool offline add`: fetch media and keep it.
struct OfflineAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add media to a set and fetch all of it; without URLs, go on with what the set has.",
        discussion: """
            An interrupted one is gone on with. Where one of several can't be fetched, the others are, and the exit status \
            is 1. Scheme, host and path of an address are written down, a query only with --keep-query: without it, give \
            the URL again to go on. Of an HLS stream the highest variant comes, whole.
            """)

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The set's name.") var set: String
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []
    @Option(
        help: ArgumentHelp("A file with one URL on each line, or - for standard input.", valueName: "list"),
        completion: .file())
    var file: String?
    @Flag(help: "Write down the query of each URL, too, so that it can be gone on with by the set's name alone.")
    var keepQuery = false

    func validate() throws {
        if set.isEmpty { throw ValidationError("<set> is empty: give the set's name") }
        if MediaURL(argument: set) != nil {
            throw ValidationError("<set> is a URL: give the set's name before the URLs")
        }
    }

    func run() async throws {
        var urls = urls
        if let file {
            guard CacheOptions.lent == nil else {
                throw CommandFailure(.usage, "while a server has the cache, give the URLs themselves, not --file")
            }
            urls += try await Abandonable(name: "spool.list").run { try URLList(path: file) }.urls
        }
        let sources = try await fetching.sources(urls.map(\.url))
        let (items, failures, warnings) = try await options.withCache(
            capacity: fetching.room.capacity, upstream: fetching.upstream()
        ) { cache in
            // A server's cache is not closed at the end, and the server warns by itself.
            let warnings = CacheOptions.lent == nil ? Warnings(of: cache) : nil
            let session = OfflineSession(cache, set: set, isQuiet: options.json)
            let failures = try await session.run(sources, keepingQuery: keepQuery)
            return (try await cache.downloads.set(set)?.items ?? [], failures, warnings)
        }
        await warnings?.end()
        if options.json { try Output.json(items.map { OfflineReport($0, in: set) }) }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }
}
