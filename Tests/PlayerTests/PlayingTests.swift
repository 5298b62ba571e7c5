import SpoolOrigin
import SpoolProxy
import Testing

/// Tests of real players that play real media through a real server, first with the origin and then without it.
@Suite(.serialized, .timeLimit(.minutes(10))) struct PlayingTests {
    @Test(.enabled(if: Players.mpv != nil, "mpv is not installed"), arguments: Presentation.allCases)
    func `mpv plays media with seeks, and again without the origin`(presentation: Presentation) async throws {
        // The demuxer of FFmpeg 5.1, which mpv uses for seeks, loses its position in MP4 segments that it requests
        // again. This also happens directly with nginx if bytes are received in pieces of 16 KiB. The errors are
        // “partial file” and “Invalid NAL unit size”, and playback ends at 4.04 or 8.03 of 12 s. The problem does not
        // occur if all bytes are received before the first seek, because mpv then plays from memory.
        let seeks = [.hlsByteRanges, .hlsFragments].contains(presentation) ? [] : [8, 2, 0.0]
        try await PlayerStage.playTwice(presentation, on: try #require(Players.mpv), seeks: seeks)
    }

    @Test(.enabled(if: Players.ffmpeg != nil, "ffmpeg is not installed"), arguments: Presentation.allCases)
    func `D49: ffmpeg reads media with seeks, and again without the origin`(presentation: Presentation) async throws {
        try await PlayerStage.playTwice(presentation, on: try #require(Players.ffmpeg))
    }

    @Test(
        .enabled(if: Players.chromium != nil, "Chromium and chromedriver are not installed"),
        arguments: Presentation.allCases.filter { $0 != .dash })
    func `Chromium plays media with seeks, and again without the origin`(presentation: Presentation) async throws {
        try await PlayerStage.playTwice(presentation, on: try #require(Players.chromium))
    }

    @Test(
        .enabled(if: Players.areAllWanted, "VLC is used in make test-players"),
        .enabled(if: Players.vlc != nil, "VLC is not installed"), arguments: Presentation.allCases)
    func `VLC plays media with seeks, and again without the origin`(presentation: Presentation) async throws {
        try await PlayerStage.playTwice(presentation, on: try #require(Players.vlc))
    }

    @Test(
        .enabled(if: Players.areAllWanted, "GStreamer is used in make test-players"),
        .enabled(if: Players.gstreamer != nil, "GStreamer is not installed"), arguments: Presentation.allCases)
    func `GStreamer plays media with seeks, and again without the origin`(presentation: Presentation) async throws {
        try await PlayerStage.playTwice(presentation, on: try #require(Players.gstreamer))
    }

    @Test(.enabled(if: Players.ffmpeg != nil, "ffmpeg is not installed"), arguments: Presentation.allCases)
    func `ffmpeg reads the same packets through the server as from the origin`(presentation: Presentation) async throws
    {
        let ffmpeg = try #require(Players.ffmpeg)
        let files = try await presentation.files()
        try await OriginServer.run(try files.resources()) { origin in
            try await PlayerStage.run { server, _ in
                let url = try #require(server.url(for: origin.url(files.entry)))
                for second in [0, 7.0] {
                    let direct = try await ffmpeg.digest(origin.url(files.entry), from: second)
                    #expect(try await ffmpeg.digest(url, from: second) == direct)
                }
            }
        }
    }
}
