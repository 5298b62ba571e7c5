import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation
import Testing

/// Tests of playback, seeks, queues and downloads on this platform, and a report on the behavior of its player.
///
/// `make apple-report` runs these tests, which need neither ffmpeg nor a server. The report is written to the directory
/// in `SPOOL_REPORT`.
@Suite("Report on a platform's player", .serialized, .timeLimit(.minutes(10)))
@MainActor struct AppleReportTests {
    private let context: ProbeContext

    init() throws { context = try ProbeContext() }

    @Test("Media plays to its end, and again without its origin", arguments: ["constant.mp3", "front.m4a", "tone.wav"])
    func plays(_ name: String) async throws {
        let cache = context.cache()
        let url = context.origin.url("/media/\(name)")
        for isFirst in [true, false] {
            let item = AVPlayerItem(caching: url, in: cache)
            let outcome = try await Playing.playToEnd(Platform.player(item), item)
            #expect(outcome == "played to the end", "\(name), first: \(isFirst)")
            if isFirst { context.origin.stop() }
        }
        await cache.close()
    }

    @Test("A seek reaches its target, and playback continues from there")
    func seeks() async throws {
        let cache = context.cache()
        let item = AVPlayerItem(caching: context.origin.url("/media/long.wav"), in: cache)
        let player = Platform.player(item)
        #expect(try await Playing.load(item) == "ready to play")
        #expect(await player.seek(to: CMTime(seconds: 60, preferredTimescale: 600)))
        player.play()
        #expect(try await wait(10) { item.currentTime().seconds > 60.5 })
        player.replaceCurrentItem(with: nil)
        await cache.close()
    }

    @Test("A queue plays its entries one after another")
    func queues() async throws {
        let cache = context.cache()
        let player = CachingPlayer(in: cache, avPlayer: Platform.queuePlayer([]))
        player.load(["front.m4a", "constant.mp3"].map { MediaSource(url: context.origin.url("/media/\($0)")) })
        player.play()
        let last = player.queue.entries.last?.id
        #expect(try await wait(30) { player.queue.currentEntry?.id == last && player.currentTime > 0.5 })
        player.pause()
        await cache.close()
    }

    @Test("Downloaded media plays without its origin")
    func downloads() async throws {
        let cache = context.cache()
        let url = context.origin.url("/media/end.m4a")
        let preloader = Preloader(cache)
        let state = await preloader.add(MediaSource(url: url), .entire).finished()
        #expect(state.phase == .finished)
        context.origin.stop()
        let item = AVPlayerItem(caching: url, in: cache)
        #expect(try await Playing.playToEnd(Platform.player(item), item) == "played to the end")
        await cache.close()
    }

    @Test("The report contains a result for each of its 25 questions, and can be written as JSON and Markdown")
    func report() async throws {
        let probes = (LoadingProbes.all + PlaybackProbes.all + SystemProbes.all).sorted { $0.number < $1.number }
        #expect(probes.map(\.number) == Array(1...25))
        let report = await Report.run(probes, in: context)
        for finding in report.findings {
            #expect(!finding.result.isEmpty, "\(finding.question)")
            #expect(finding.state != .failed, "\(finding.question) \(finding.result)")
        }
        let decoded = try JSONDecoder().decode(Report.self, from: report.json())
        #expect(decoded.findings.count == 25 && decoded.traces == report.traces)
        let directory = ProcessInfo.processInfo.environment["SPOOL_REPORT"].map { URL(fileURLWithPath: $0) }
        if let directory { try report.write(to: directory) }
        print(report.markdown)
    }
}
