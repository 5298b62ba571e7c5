import ArgumentParser

/// `spool demo`: show what the cache is for.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Play media twice, at last without the origin, and show which bytes came from where.",
        discussion: "Without an argument it makes a film with ffmpeg and serves it. The cache is one of its own, gone "
            + "afterwards, unless --cache names one. The last line is JSON.")

    struct Report: Encodable, Sendable {
        var first: PlayReport
        var second: PlayReport
    }

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "A file or a URL to play instead.") var media: PlayableURL?

    func run() async throws {
        let story = try await Demo(options: options, fetching: fetching, media: media).run()
        if !options.json { try Output.line(story.text) }
        try Output.json(Report(first: story.first, second: story.second))
        guard let broken = story.promises.first(where: { !$0.isKept }) else { return }
        throw CommandFailure(.brokenPromise, "a promise was broken: \(broken.text)")
    }
}
