#if Tools
import ArgumentParser
import Foundation
import Spool
import SpoolProxy

/// `spool preload`: fetches media into the cache before it is played.
struct PreloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preload",
        abstract: "Fetch media, or the bytes that a player needs to start, into the cache before playback.",
        discussion:
            "Stored bytes are not fetched again, even after an interruption. If some media can't be "
            + "fetched, the rest is still fetched, and the exit status is 1. For HLS or DASH, the playlists or the "
            + "manifest are fetched, and the first segments of one variant. With --all, the highest quality is fetched."
    )

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []
    @Option(
        help: ArgumentHelp("A file with one URL on each line, or - for standard input.", valueName: "list"),
        completion: .file())
    var file: String?
    @Option(help: ArgumentHelp("Fetch this many bytes from the start, such as 500kB.", valueName: "n")) var bytes:
        ByteCount?
    @Option(
        help: ArgumentHelp("Fetch this many seconds from the start, based on the media's bit rate.", valueName: "s"))
    var seconds: Double?
    @Flag(help: "Fetch every byte.") var all = false
    @Flag(help: "Fetch the bytes that a player needs to start (default).") var smart = false
    @Option(help: ArgumentHelp("Maximum number of concurrent preloads.", valueName: "n")) var jobs = 4

    func validate() throws {
        if urls.isEmpty, file == nil { throw ValidationError("give URLs, or a file of URLs with --file") }
        if [bytes != nil, seconds != nil, all, smart].count(where: { $0 }) > 1 {
            throw ValidationError("give only one of --bytes, --seconds, --all and --smart")
        }
        if let seconds, !(seconds >= 0 && seconds.isFinite) {
            throw ValidationError("--seconds must be 0 or more")
        }
        if !(1...256).contains(jobs) { throw ValidationError("--jobs must be a number from 1 to 256") }
    }

    private var amount: PreloadAmount {
        if let bytes { return .bytes(bytes.bytes) }
        if let seconds { return .seconds(seconds) }
        return all ? .entire : .startup
    }

    private var share: StreamAmount {
        if bytes != nil { return .playlist }
        return all ? .whole : .first(seconds: seconds ?? 0)
    }

    func run() async throws {
        var urls = urls
        if let file {
            urls += try await InterruptibleExecutor(name: "spool.list").run { try URLList(path: file) }.urls
        }
        let sources = try await fetching.sources(urls.map(\.url))
        let (outcomes, warnings) = try await options.withCacheOrServer(
            capacity: fetching.size.capacity, upstream: fetching.upstream(), isPreload: true
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
#endif
