import ByteRanges
import Foundation
import Testing

@testable import SpoolCLI

@Suite("Demonstration report")
struct DemoReportTests {
    private func story(
        fromOrigin: Int64 = 1000, second: Int64 = 0, sentTwice: Int64 = 0, cut: Int = 0, isIdentical: Bool? = true,
        ended: Bool = true, third: (ended: Bool, bytes: Int64) = (true, 0)
    ) throws -> DemoReport {
        let url = try #require(URL(string: "http://h/film.mp4"))
        var (first, last) = (
            PlaybackReport(.init(duration: 60, ended: ended), of: url),
            PlaybackReport(.init(duration: 60, ended: true), of: url)
        )
        first.bytesFromOrigin = fromOrigin
        first.cachedRanges = [[0, 600], [600, 1000]]
        last.bytesFromOrigin = second
        var arrivals = DownloadMap()
        arrivals.stored(0..<300)
        arrivals.beginStage()
        arrivals.stored(600..<1000)
        return DemoReport(
            name: "film.mp4", length: 1000, first: first, second: last,
            third: ServedPlayback(
                player: "ffmpeg", ended: third.ended, bytesFromCache: 1000, bytesFromOrigin: third.bytes,
                originRequests: third.bytes > 0 ? 1 : 0),
            page: "http://127.0.0.1:8787/.spool/", arrivals: arrivals,
            seeks: [SeekArgument(at: 6, to: 39)], sent: (fromOrigin, sentTwice, cut), isIdentical: isIdentical)
    }

    @Test("The demonstration's report has at most 20 lines, and each line has at most 100 characters")
    func short() throws {
        let lines = try story().text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 20)
        #expect(lines.allSatisfy { $0.count <= 100 })
    }

    @Test("The demonstration's report marks each failed check as failed")
    func broken() throws {
        for cut in [0, 1] { #expect(try story(sentTwice: 64 << 10, cut: cut).checks.allSatisfy(\.isPassed)) }
        for broken in [
            try story(fromOrigin: 1001), try story(second: 1), try story(sentTwice: 65_537),
            try story(sentTwice: 131_073, cut: 2), try story(isIdentical: false), try story(ended: false),
            try story(third: (false, 0)), try story(third: (true, 1)),
        ] {
            #expect(broken.checks.count { !$0.isPassed } == 1)
            #expect(broken.text.contains("✗ FAILED"))
        }
    }

    @Test("Each cell of the map shows the stage of playback in which most of the cell's bytes were received")
    func map() {
        var map = DownloadMap()
        map.stored(0..<25)
        map.beginStage()
        map.stored(20..<25)
        map.stored(60..<100)
        map.beginStage()
        map.stored(50..<75)
        #expect(map.text(length: 100, cells: 4) == "1·32")
        #expect(map.all == [0..<25, 50..<100])
        #expect(map.text(length: 0, cells: 4) == "")
    }
}
