import Foundation
import SpoolTesting

/// A program that plays media, and tells whether it has played them to their end.
protocol MediaPlayer: Sendable {
    /// Plays `url`, seeks where it is told, then plays to the end.
    ///
    /// - Throws: ``Tool/Failed`` unless the seeks and the end were reached.
    func play(_ url: URL, _ plan: PlayPlan) async throws
}

/// What a player does with one URL.
struct PlayPlan: Sendable {
    /// Where it seeks, in seconds, one after the other.
    var seeks: [Double] = []
    /// How long the media are, in seconds; nil for a live stream, which only has to end.
    var duration: Double?
}

/// The players that tests play with, where this machine has them.
enum Players {
    static let mpv = MPV()
    static let ffmpeg = FFmpegPlayer()
    static let chromium = Chromium()
    static let vlc = VLC()
    static let gstreamer = GStreamer()
    /// A server to play from.
    static let nginx = Nginx()

    /// All that this machine has, by name.
    static var all: [(name: String, player: any MediaPlayer)] {
        let players: [(String, (any MediaPlayer)?)] = [
            ("mpv", mpv), ("ffmpeg", ffmpeg), ("Chromium", chromium), ("VLC", vlc), ("GStreamer", gstreamer),
        ]
        return players.compactMap { name, player in player.map { (name, $0) } }
    }

    /// Whether those that `make test` leaves out play, too: `SPOOL_PLAYERS=all`, as `make test-players` sets it.
    static let areAllWanted = ProcessInfo.processInfo.environment["SPOOL_PLAYERS"] == "all"
}

/// The scripts that lie beside the tests.
enum PlayerScript {
    static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Scripts").appendingPathComponent(name).path
    }
}
