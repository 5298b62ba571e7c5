import Foundation
import Synchronization

/// The state of an item, such as its status, duration and position. It may be used from any thread, and is written
/// mainly by the playback's thread.
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

    /// The counter of the libmpv handles that play the item. There is usually at most one, but briefly there may be two
    /// when the item moves to another player.
    let playbacks = OpenHandleCounter()
    private let values = Mutex(Values())

    var status: AVPlayerItem.Status { values.withLock { $0.status } }
    var error: (any Error)? { values.withLock { $0.error } }
    /// The duration in seconds, or `nil` if it is unknown.
    var duration: Double? { values.withLock { $0.duration } }
    /// The current time in seconds.
    var time: Double {
        get { values.withLock { $0.time } }
        set { values.withLock { $0.time = newValue } }
    }
    /// The end of the demuxer's read-ahead in seconds, or `nil` if it is unknown.
    var loadedUntil: Double? {
        get { values.withLock { $0.loadedUntil } }
        set { values.withLock { $0.loadedUntil = newValue } }
    }
    /// Whether seeking is possible.
    var isSeekable: Bool {
        get { values.withLock { $0.isSeekable } }
        set { values.withLock { $0.isSeekable = newValue } }
    }
    /// The tracks, if the playback was opened to find them.
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

    /// Marks the item as ready. Returns `false` if the item was already ready or has failed.
    func becameReady() -> Bool {
        values.withLock { values in
            guard values.status == .unknown else { return false }
            values.status = .readyToPlay
            return true
        }
    }

    /// Marks the item as failed. Returns `false` if the item had already failed.
    func failed(_ error: any Error) -> Bool {
        values.withLock { values in
            guard values.status != .failed else { return false }
            values.status = .failed
            values.error = error
            return true
        }
    }
}

/// A counter of the libmpv handles that play an item, so that a test can wait until all of them are closed.
final class OpenHandleCounter: Sendable {
    private struct State {
        var count = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// The number of open handles.
    var count: Int { state.withLock { $0.count } }

    func opened() { state.withLock { $0.count += 1 } }

    func closed() {
        let waiters = state.withLock { state in
            state.count -= 1
            guard state.count == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until no handle is open.
    func waitUntilNone() async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.count > 0 { state.waiters.append(continuation) }
                return state.count == 0
            }
            if isDone { continuation.resume() }
        }
    }
}
