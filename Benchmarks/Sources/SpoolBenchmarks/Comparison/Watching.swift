#if os(Linux)
import AVFoundation
import Foundation

/// Measurements with a player that has no video or audio output, at normal speed.
@MainActor enum Watching {
    /// Plays the first `seconds` of the media, and removes the item from the player. The caller must release the asset.
    ///
    /// - Throws: ``BenchmarkError`` if the media can't be played, or playback makes no progress.
    static func watch(_ asset: AVURLAsset, for seconds: Double) async throws {
        let player = AVPlayer()
        player.headless = .init(speed: 1)
        let item = AVPlayerItem(asset: asset)
        player.replaceCurrentItem(with: item)
        defer { player.replaceCurrentItem(with: nil) }
        let begin = ContinuousClock.now
        while item.status != .readyToPlay || item.currentTime().seconds < seconds {
            guard item.status != .failed, ContinuousClock.now - begin < .seconds(seconds + 30) else {
                throw BenchmarkError("playback failed: \(item.error.map { "\($0)" } ?? "no progress")")
            }
            if item.status == .readyToPlay, player.rate == 0 { player.play() }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Returns the time from the player's first loading request to the first media bytes that it receives, in
    /// milliseconds.
    static func timeToFirstData(_ asset: AVURLAsset) async throws -> Double {
        let player = AVPlayer()
        player.headless = .init(speed: 1)
        let item = AVPlayerItem(asset: asset)
        async let time = firstData(asset)
        player.replaceCurrentItem(with: item)
        defer { player.replaceCurrentItem(with: nil) }
        guard let time = await time else { throw BenchmarkError("no bytes were received within ten seconds") }
        return time
    }

    /// Returns the time from the first loading request to the first media bytes, in milliseconds. The result is `nil`
    /// if no bytes are received within ten seconds. A separate thread checks the asset's log every 0.1 ms.
    nonisolated private static func firstData(_ asset: AVURLAsset) async -> Double? {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let begin = ContinuousClock.now
                var asked: ContinuousClock.Instant?
                while ContinuousClock.now - begin < .seconds(10) {
                    let requests = asset.requestLog
                    if asked == nil, !requests.isEmpty { asked = .now }
                    if let asked, requests.contains(where: { $0.kind == .data && $0.bytes > 0 }) {
                        return continuation.resume(returning: (ContinuousClock.now - asked) / .milliseconds(1))
                    }
                    usleep(100)
                }
                continuation.resume(returning: nil)
            }
        }
    }
}
#endif
