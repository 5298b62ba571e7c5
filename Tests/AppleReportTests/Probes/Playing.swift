import AVFoundation
import Foundation
import Spool
import SpoolAVFoundation

/// Helpers for probes that play media.
@MainActor enum Playing {
    /// Waits until an item is ready or has failed. Returns its status and error as text.
    static func load(_ item: AVPlayerItem, seconds: Double = 15) async throws -> String {
        _ = try await wait(seconds) { item.status != .unknown }
        return describe(item)
    }

    /// Returns the status and the error of an item as text.
    static func describe(_ item: AVPlayerItem) -> String {
        switch item.status {
        case .readyToPlay: "ready to play"
        case .failed: "failed: \(describe(item.error))"
        default: "neither ready nor failed"
        }
    }

    /// Returns the domains and codes of an error and its underlying error as text.
    static func describe(_ error: (any Error)?) -> String {
        guard let error = error as NSError? else { return "no error" }
        let cause = (error.userInfo[NSUnderlyingErrorKey] as? NSError).map { ", caused by \($0.domain) \($0.code)" }
        return "\(error.domain) \(error.code)" + (cause ?? "")
    }

    /// Plays an item until it ends or fails. Returns a description of the outcome.
    static func playToEnd(_ player: AVPlayer, _ item: AVPlayerItem, seconds: Double = 20) async throws -> String {
        let log = EventLog(of: player)
        player.play()
        let hasEnded = try await wait(seconds) { log.contains("end") || item.status == .failed }
        player.pause()
        if item.status == .failed { return describe(item) }
        return hasEnded ? "played to the end" : "stopped at \(text(item.currentTime().seconds)) s"
    }

    /// Returns a number of seconds as text with two decimal places.
    static func text(_ seconds: Double) -> String { String(format: "%.2f", seconds) }

    /// Plays media through a new cache, and records its loading requests.
    static func trace(
        _ name: String, in context: ProbeContext, deliversProbe: Bool = true, seconds: Double = 2
    ) async throws -> (outcome: String, trace: LoadingTrace) {
        let cache = context.cache()
        let asset = CachingURLAsset(
            caching: MediaSource(url: context.origin.url("/media/\(name)")), in: cache, deliversProbe: deliversProbe)
        asset.loader?.trace.start()
        let item = AVPlayerItem(asset: asset)
        let player = Platform.player(item)
        let outcome = try await load(item)
        player.play()
        let start = item.currentTime().seconds
        let plays = try await wait(seconds + 5) { item.currentTime().seconds - start > seconds * 0.9 }
        player.pause()
        player.replaceCurrentItem(with: nil)
        let trace = asset.loader?.trace.trace ?? LoadingTrace(events: [])
        await cache.close()
        return (outcome + (plays ? ", plays" : ", does not play"), trace)
    }
}

extension LoadingTrace {
    /// The requests as text, such as `information 0–1, 0–`.
    var summary: String {
        requests.map { requested in
            let range = requested.offset.map { offset in
                "\(offset)–" + (requested.toEnd ? "" : String(offset + (requested.length ?? 0) - 1))
            }
            return (requested.information ? "information " : "") + (range ?? "")
        }.joined(separator: ", ")
    }

    /// The number of requests for type and length.
    var informationCount: Int { requests.count(where: \.information) }
}
