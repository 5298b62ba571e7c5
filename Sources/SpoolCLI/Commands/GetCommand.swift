import ArgumentParser
import Foundation
import Spool

/// `spool get`: fetch a media file, or part of it, through the cache.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Fetch a media file, or part of it, through the cache.",
        discussion: "What the cache has is not fetched again, also after an interruption. Without --output the bytes "
            + "are fetched into the cache only.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URL of the media.") var url: MediaURL
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write, or - for standard output.", valueName: "file"), completion: .file())
    var output: String?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The bytes to get: 0-99, 100- or -500, as in HTTP.", valueName: "a-b"))
    var range: RangeArgument?

    func validate() throws {
        if options.json, output == "-" { throw ValidationError("--json and --output - both want standard output") }
    }

    func run() async throws {
        let source = fetching.source(url.url)
        let (outcome, media, warnings) = try await options.withCache(capacity: fetching.room.capacity) { cache in
            let warnings = Warnings(of: cache)
            let media = cache.media(for: source)
            let fetch = Fetch(media, range?.range ?? .all, to: try OutputTarget(output))
            return (try await fetch.run(), media, warnings)
        }
        await warnings.end()
        // All bytes are delivered; a report without the stored ranges is better than none.
        let kept = try? await options.contents(of: url.key)?.first
        let report = FetchReport(outcome, of: source, counts: media.statistics, kept: kept)
        if options.json { return try Output.json(report) }
        if output != "-" { Output.line(report.text) } else if Output.isWatched { Output.remark(report.text) }
    }
}
