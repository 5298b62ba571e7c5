import Foundation
import Synchronization

/// The state of an item, readable from any thread: its status, duration and position. Written by the playback's thread.
final class PlayerItemState: Sendable {
    private struct Values {
        var status = AVPlayerItem.Status.unknown
        var error: (any Error)?
        var duration: Double?
        var time: Double = 0
        var loadedUntil: Double?
        var isSeekable = false
        var tracks: [TrackValues] = []
        var isStarved = false
        var isAtEnd = false
        var forwardBufferDuration: TimeInterval = 0
        var usesNetworkWhilePaused = false
    }

    /// The libmpv handles that play the item: one at most, and a moment's overlap when it changes players.
    let playbacks = OpenHandleCounter()
    private let values = Mutex(Values())

    var status: AVPlayerItem.Status { values.withLock { $0.status } }
    var error: (any Error)? { values.withLock { $0.error } }
    /// Seconds; nil while not known.
    var duration: Double? { values.withLock { $0.duration } }
    /// Seconds from the beginning.
    var time: Double {
        get { values.withLock { $0.time } }
        set { values.withLock { $0.time = newValue } }
    }
    /// Seconds from the beginning up to where the demuxer has read; nil while not known.
    var loadedUntil: Double? {
        get { values.withLock { $0.loadedUntil } }
        set { values.withLock { $0.loadedUntil = newValue } }
    }
    /// Whether playback can go elsewhere.
    var isSeekable: Bool {
        get { values.withLock { $0.isSeekable } }
        set { values.withLock { $0.isSeekable = newValue } }
    }
    /// The tracks, if the playback was to find out.
    var tracks: [TrackValues] {
        get { values.withLock { $0.tracks } }
        set { values.withLock { $0.tracks = newValue } }
    }
    /// Whether playback waits for media.
    var isStarved: Bool {
        get { values.withLock { $0.isStarved } }
        set { values.withLock { $0.isStarved = newValue } }
    }
    var forwardBufferDuration: TimeInterval {
        get { values.withLock { $0.forwardBufferDuration } }
        set { values.withLock { $0.forwardBufferDuration = newValue } }
    }
    var usesNetworkWhilePaused: Bool {
        get { values.withLock { $0.usesNetworkWhilePaused } }
        set { values.withLock { $0.usesNetworkWhilePaused = newValue } }
    }

    func learned(duration: Double) {
        values.withLock { $0.duration = duration }
    }

    /// The item can be played; false if it has failed, which is for good.
    func becameReady() -> Bool {
        values.withLock { values in
            guard values.status == .unknown else { return false }
            values.status = .readyToPlay
            return true
        }
    }

    /// The item cannot be played any more; false if it had failed already.
    func failed(_ error: any Error) -> Bool {
        values.withLock { values in
            guard values.status != .failed else { return false }
            values.status = .failed
            values.error = error
            return true
        }
    }
}
