import ArgumentParser
import Foundation
import Spool

/// `spool preload`: bring media into the cache before anyone plays it.
struct PreloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preload",
        abstract: "Bring media, or what a player needs of it to start, into the cache before anyone plays it.",
        discussion:
            "What the cache has is not fetched again, also after an interruption. Where one of several can't be "
            + "fetched, the others are, and the exit status is 1. Of a stream, HLS or DASH, the playlists come, or the "
            + "manifest, and the first segments of what players begin with; with --all, all of the highest quality.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []
    @Option(
        help: ArgumentHelp("A file with one URL on each line, or - for standard input.", valueName: "list"),
        completion: .file())
    var file: String?
    @Option(help: ArgumentHelp("Fetch the first bytes, such as 500kB.", valueName: "n")) var bytes: ByteCount?
    @Option(help: ArgumentHelp("Fetch the first seconds, by the media's bit rate.", valueName: "s"))
    var seconds: Double?
    @Flag(help: "Fetch every byte.") var all = false
    @Flag(help: "Fetch what a player needs to start; so it is without any of these options.") var smart = false
    @Option(help: ArgumentHelp("How many are fetched at a time.", valueName: "n")) var jobs = 4

    func validate() throws {
        if urls.isEmpty, file == nil { throw ValidationError("give URLs, or a list of them with --file") }
        if [bytes != nil, seconds != nil, all, smart].count(where: { $0 }) > 1 {
            throw ValidationError("give one of --bytes, --seconds, --all and --smart")
        }
        if let seconds, !(seconds >= 0 && seconds.isFinite) {
            throw ValidationError("--seconds is a time from 0 on")
        }
        if !(1...256).contains(jobs) { throw ValidationError("--jobs is a number from 1 to 256") }
    }

    private var amount: PreloadAmount {
        if let bytes { return .bytes(bytes.bytes) }
        if let seconds { return .seconds(seconds) }
        return all ? .whole : .start
    }

    private var share: StreamAmount {
        if bytes != nil { return .playlist }
        return all ? .whole : .first(seconds: seconds ?? 0)
    }

    func run() async throws {
        var urls = urls
        if let file {
            urls += try await Abandonable(name: "spool.list").run { try URLList(path: file) }.urls
        }
        let sources = try await fetching.sources(urls.map(\.url))
        let (outcomes, warnings) = try await options.withCacheOrServer(
            capacity: fetching.room.capacity, upstream: fetching.upstream(), isPreload: true
        ) { cache in
            let warnings = Warnings(of: cache)
            let session = PreloadSession(cache, jobs: jobs, isQuiet: options.json)
            return (try await session.run(sources, amount, ofStreams: share), warnings)
        }
        await warnings.end()
        if options.json { try Output.json(zip(sources, outcomes).map { PreloadReport($0, $1) }) }
        let failures = outcomes.compactMap(\.error)
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }
}
