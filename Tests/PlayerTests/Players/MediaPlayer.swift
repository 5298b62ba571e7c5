import Foundation
import SpoolTesting

/// A program that plays media and reports whether it reached the end.
protocol MediaPlayer: Sendable {
    /// Plays `url`, performs the seeks in the plan, and then plays to the end.
    ///
    /// - Throws: ``Tool/Failed`` unless all seek targets and the end are reached.
    func play(_ url: URL, _ plan: PlayPlan) async throws
}

/// The seeks that a player performs, and the expected duration.
struct PlayPlan: Sendable {
    /// The positions of the seeks, in seconds, in order.
    var seeks: [Double] = []
    /// The duration of the media, in seconds; `nil` for a live stream, for which only the end is checked.
    var duration: Double?
}

/// The players that tests use if they are installed on this machine.
enum Players {
    static let mpv = MPV()
    static let ffmpeg = FFmpegPlayer()
    static let chromium = Chromium()
    static let vlc = VLC()
    static let gstreamer = GStreamer()
    /// nginx, for use as the origin.
    static let nginx = Nginx()

    /// All installed players, with their names.
    static var all: [(name: String, player: any MediaPlayer)] {
        let players: [(String, (any MediaPlayer)?)] = [
            ("mpv", mpv), ("ffmpeg", ffmpeg), ("Chromium", chromium), ("VLC", vlc), ("GStreamer", gstreamer),
        ]
        return players.compactMap { name, player in player.map { (name, $0) } }
    }

    /// Whether tests also use the players that `make test` omits. `make test-players` sets `SPOOL_PLAYERS=all` for
    /// this.
    static let areAllWanted = ProcessInfo.processInfo.environment["SPOOL_PLAYERS"] == "all"
}

/// The scripts in the test folder.
enum PlayerScript {
    static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Scripts").appendingPathComponent(name).path
    }
}
