import AVFoundation
import Foundation
import Synchronization

/// The notifications from a player and its items, in order, with the threads on which they were posted.
final class EventLog: Sendable {
    /// One notification, or one change of an observed property.
    struct Entry: Sendable {
        let name: String
        let isMainThread: Bool
    }

    private struct Tokens: @unchecked Sendable {
        // The notification center's tokens may be removed from any thread.
        var values: [any NSObjectProtocol] = []
    }

    private let reasonKey: String
    private let entries = Mutex<[Entry]>([])
    private let tokens = Mutex(Tokens())

    /// Observes a player and all items until the log is released.
    @MainActor init(of player: AVPlayer) {
        Platform.markMainQueue()
        reasonKey = AVPlayer.rateDidChangeReasonKey
        let added = [
            observe(AVPlayer.rateDidChangeNotification, of: player, named: "rate"),
            observe(.AVPlayerItemPlaybackStalled, of: nil, named: "stalled"),
            observe(.AVPlayerItemDidPlayToEndTime, of: nil, named: "end"),
            observe(.AVPlayerItemFailedToPlayToEndTime, of: nil, named: "failed to play to the end"),
            observe(Platform.timeJumped, of: nil, named: "time jumped"),
        ]
        tokens.withLock { $0.values = added }
    }

    deinit {
        for token in tokens.withLock({ $0.values }) { NotificationCenter.default.removeObserver(token) }
    }

    private func observe(_ name: Notification.Name, of object: AVPlayer?, named text: String) -> any NSObjectProtocol {
        NotificationCenter.default.addObserver(forName: name, object: object, queue: nil) {
            [weak self, reasonKey] notification in
            var text = text
            if let player = notification.object as? AVPlayer {
                let reason = notification.userInfo?[reasonKey] as? AVPlayer.RateDidChangeReason
                text += " \(Self.rate(of: player)) (\(reason?.rawValue ?? "no reason"))"
            }
            self?.add(text)
        }
    }

    /// Returns the rate of a player as text, or a question mark on a thread that must not read the rate.
    private static func rate(of player: AVPlayer) -> String {
        guard Platform.isOnMainQueue else { return "?" }
        let player = Moved(value: player)
        return MainActor.assumeIsolated { "\(player.value.rate)" }
    }

    /// A value that is created and used only on the main thread.
    private struct Moved<Value>: @unchecked Sendable { let value: Value }

    /// Adds an entry. This method may be called from any thread.
    func add(_ name: String) {
        let entry = Entry(name: name, isMainThread: Platform.isOnMainQueue)
        entries.withLock { $0.append(entry) }
    }

    /// The entries so far.
    var all: [Entry] { entries.withLock { $0 } }

    /// The names of the entries so far.
    var names: [String] { all.map(\.name) }

    /// Returns whether the name of an entry starts with this text.
    func contains(_ name: String) -> Bool { names.contains { $0.hasPrefix(name) } }
}
