#if Tools
import ArgumentParser
import Foundation
import Spool
import SpoolProxy
import Synchronization

/// `spool demo`: demonstrates the benefit of the cache.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Play media, play it again without the origin, and serve it to another player.",
        discussion: "Without an argument, the command generates a video with ffmpeg and serves it. The cache is "
            + "temporary, unless --cache is given. The last line of the output is JSON.")

    struct Report: Encodable, Sendable {
        var first: PlaybackReport
        var second: PlaybackReport
        @EncodedAsNull var third: ServedPlayback?
    }

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Flag(help: "Keep the server and its page running until the command is interrupted.") var watch = false
    @Argument(help: "A file or a URL to play instead of the generated video.") var media: PlayableURL?

    func run() async throws {
        try await Demo(options: options, fetching: fetching, media: media).run { report in
            if !options.json { try Output.line(report.text) }
            try Output.json(Report(first: report.first, second: report.second, third: report.third))
            if let broken = report.checks.first(where: { !$0.isPassed }) {
                throw CommandFailure(.checkFailed, "a check failed: \(broken.text)")
            }
            guard watch, let page = report.page else { return }
            // The token is printed only on a terminal, as by `spool serve`.
            let token = Output.isOutputTerminal ? report.token.map { "#token=\($0.text)" } ?? "" : ""
            Output.remark("the server runs until this command is interrupted (Ctrl-C): \(page)\(token)")
            Interruption.allow(seconds: 15)
            await CancellationWait.wait()
        }
    }
}

/// The demonstration, which plays media three times through its own cache.
///
/// The first playback uses the origin and includes seeks. The second one does not use the origin. The third one uses
/// another player, through the proxy server.
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

    /// Plays the media, and passes the report to `show` while the server is still running.
    func run(_ show: (DemoReport) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("spool-demo-\(ProcessInfo.processInfo.processIdentifier)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // If the folder cannot be removed, it remains in the temporary folder.
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
        var report = DemoReport(
            name: (origin.file ?? origin.url).lastPathComponent, length: kept?.length, first: first, second: second,
            arrivals: recording.arrivals, seeks: recording.seeks, sent: sent,
            isIdentical: try await compare(origin, options, in: folder))
        Output.remark("third playback, by another player through the proxy server …")
        try await serve(origin, options, upstream: upstream) { third, page, token in
            (report.third, report.page, report.token) = (third, page, token)
            try await show(report)
        }
    }

    /// Serves the cache, and plays the media through the server. Passes the result, the URL of the server's page, and
    /// the token for changes to `body`.
    private func serve(
        _ origin: DemoOrigin, _ options: CacheOptions, upstream: (any Upstream)?,
        _ body: (ServedPlayback?, String?, OperatorToken?) async throws -> Void
    ) async throws {
        var configuration = ProxyConfiguration()
        configuration.port = 0
        configuration.logger = options.logger
        let cache = try await options.openNow(upstream) { cache in
            // The file does not change, and an origin that is switched off can't revalidate it.
            cache.freshness = .immutable
            configuration.configure(&cache)
        }
        let file = options.directory.appendingPathComponent("operator-token")
        let token = try? OperatorToken.stored(in: file)  // Without a token, the page can't change anything.
        configuration.operatorSettings = token.map { OperatorSettings(token: $0, settings: []) }
        try await options.use(cache) { [configuration] cache in
            let server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
            do {
                try await body(
                    try await Self.play(origin.url, through: server, from: cache), server.pageAddress, token)
                await server.stop(within: .seconds(10))
            } catch {
                await server.stop(within: .seconds(10))
                throw error
            }
        }
    }

    private static func play(
        _ url: URL, through server: ProxyServer, from cache: MediaCache
    ) async throws -> ServedPlayback? {
        guard let url = server.url(for: url), let (player, ended) = try await ExternalPlayer.play(url) else {
            return nil
        }
        let statistics = cache.statistics
        return ServedPlayback(
            player: player, ended: ended, bytesFromCache: statistics.bytesFromCache,
            bytesFromOrigin: statistics.bytesFromOrigin, originRequests: statistics.originRequests)
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

    /// Returns whether the exported media is identical to the origin's file, or `nil` if that file is not available.
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
#endif
