import ArgumentParser
import Foundation
import Spool
import Synchronization

/// `spool demo`: demonstrates the benefit of the cache.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Play media twice, the second time without the origin, and show the sources of the bytes.",
        discussion: "Without an argument, it generates a video with ffmpeg and serves it. The cache is temporary, "
            + "unless --cache names one. The last line is JSON.")

    struct Report: Encodable, Sendable {
        var first: PlaybackReport
        var second: PlaybackReport
    }

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "A file or a URL to play instead.") var media: PlayableURL?

    func run() async throws {
        let story = try await Demo(options: options, fetching: fetching, media: media).run()
        if !options.json { try Output.line(story.text) }
        try Output.json(Report(first: story.first, second: story.second))
        guard let broken = story.promises.first(where: { !$0.isKept }) else { return }
        throw CommandFailure(.checkFailed, "a check failed: \(broken.text)")
    }
}

/// The demonstration, which plays media twice through its own cache: first with the origin and with seeks, then without
/// the origin.
struct Demo: Sendable {
    private struct Recording: Sendable {
        var arrivals = DownloadMap()
        var seeks: [SeekArgument] = []
    }

    /// The cache directory, and the output format.
    var options: CacheOptions
    /// The header fields of requests, and the capacity.
    var fetching: FetchOptions
    /// The media to play, or `nil` for a generated video.
    var media: PlayableURL?

    /// Plays the media twice, and returns the report.
    func run() async throws -> DemoReport {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("spool-demo-\(ProcessInfo.processInfo.processIdentifier)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // If it cannot be removed, it remains as a temporary folder.
        defer { try? FileManager.default.removeItem(at: folder) }
        let origin = try await origin(in: folder)
        var options = options
        if options.cachePath == nil { options.cachePath = folder.appendingPathComponent("cache").path }

        Output.remark("first playback, through an empty cache …")
        let (first, recording) = try await play(origin, options, upstream: nil) { PlayPlan.tour(ofSeconds: $0 ?? 0) }
        let sent = try await origin.sent()
        let upstream = await origin.switchOff()
        Output.remark("second playback, with the origin switched off …")
        let (second, _) = try await play(origin, options, upstream: upstream) { duration in
            PlayPlan(rate: 2 * PlayPlan.rate(forSeconds: duration ?? 0))
        }
        let kept = try await options.contents(of: CacheKeyPolicy.url.key(for: origin.url))?.first
        return DemoReport(
            name: (origin.file ?? origin.url).lastPathComponent, length: kept?.length, first: first, second: second,
            arrivals: recording.arrivals, seeks: recording.seeks, sent: sent,
            isIdentical: try await compare(origin, options, in: folder))
    }

    private func origin(in folder: URL) async throws -> DemoOrigin {
        switch media?.url {
        case nil:
            Output.remark("generating a video with ffmpeg …")
            return try await DemoOrigin(serving: DemoMedia.make(in: folder))
        case let file? where file.isFileURL:
            return try await DemoOrigin(serving: file)
        case let url?:
            return DemoOrigin(at: url)
        }
    }

    private func play(
        _ origin: DemoOrigin, _ options: CacheOptions, upstream: (any Upstream)?,
        _ plan: @escaping @Sendable (Double?) -> PlayPlan
    ) async throws -> (PlaybackReport, Recording) {
        let recording = Mutex(Recording())
        let report = try await Play(
            options: options, capacity: fetching.size.capacity, source: try await fetching.source(origin.url),
            upstream: upstream ?? fetching.upstream(), isHeadless: true, plan: plan,
            onEvent: { event in
                guard case .stored(let range) = event.kind else { return }
                recording.withLock { $0.arrivals.stored(range) }
            },
            didSeek: { seek in
                recording.withLock {
                    $0.arrivals.beginStage()
                    $0.seeks.append(seek)
                }
            }
        ).run()
        return (report, recording.withLock { $0 })
    }

    /// Returns whether the exported media equals the origin's file, or `nil` if that file is not available.
    private func compare(_ origin: DemoOrigin, _ options: CacheOptions, in folder: URL) async throws -> Bool? {
        guard let file = origin.file else { return nil }
        let copy = folder.appendingPathComponent("copy")
        do {
            try await options.withCache { try await $0.media(for: origin.url).export(to: copy) }
        } catch let error as CacheError where [.incomplete, .notStored].contains(error.code) {
            return false
        }
        return FileManager.default.contentsEqual(atPath: file.path, andPath: copy.path)
    }
}
