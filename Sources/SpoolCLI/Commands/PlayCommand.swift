import ArgumentParser
import Foundation

/// `spool play`: play media through the cache with AVPlayer.
struct PlayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Play media through the cache with AVPlayer.",
        discussion: "What can't be cached, such as files and playlists, is played plainly.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URL of the media, or a file.") var url: PlayableURL
    @Flag(help: "Without picture and sound, as fast as --speed says.") var headless = false
    @Option(
        help: ArgumentHelp(
            "At this time of the media jump to that one, in seconds; may be given several times, and happens in order.",
            valueName: "at:to"))
    var seek: [SeekArgument] = []
    @Option(help: ArgumentHelp("Stop at this time of the media, in seconds.", valueName: "t")) var until: Double?
    @Option(help: ArgumentHelp("How many times as fast as recorded, from 0.01 to 100.", valueName: "n"))
    var speed = 1.0

    func validate() throws {
        guard (0.01...100).contains(speed) else { throw ValidationError("--speed is from 0.01 to 100") }
        if let until, !(until >= 0 && until.isFinite) { throw ValidationError("--until is a time from 0 on") }
    }

    func run() async throws {
        let plan = PlayPlan(seeks: seek, until: until, rate: speed)
        let source = try await fetching.source(url.url)
        let report = try await Play(
            options: options, capacity: fetching.room.capacity, source: source, upstream: fetching.upstream(),
            isHeadless: headless, plan: { _ in plan }
        ).run()
        if options.json { try Output.json(report) } else { try Output.line(report.text) }
    }
}
