import CMPV
import Foundation
import Synchronization

/// The playback of one item by one libmpv handle. A dedicated thread handles libmpv's events.
///
/// Commands may be sent from any thread and do not wait. ``events`` ends when the handle is destroyed. Only this object
/// owns the handle, so a player only has to call ``shutDown(cancelling:)``.
final class ItemPlayback: Sendable {
    let events: AsyncStream<PlaybackEvent>
    let item: PlayerItemState
    private let reader: StreamReader?
    let options: PlaybackOptions

    let send: AsyncStream<PlaybackEvent>.Continuation
    let state: Mutex<State>

    struct State: Sendable {
        /// The handle, or `nil` once it is being destroyed. All calls except the wait for events are made while the
        /// lock is held, so that no call uses a destroyed handle.
        var handle: MPVHandle?
        var seeks = SeekTracker()
        var isShutDown = false
        var isLoaded = false
        var isSeekable = false
        /// Whether the media is a stream that did not have an end when it was opened.
        var isLive = false
        /// Whether the rate is not 0.
        var isPlaying = false
        /// The number of property changes that libmpv has not acknowledged yet.
        var unansweredSets = 0
        var isAtEnd = false
        /// Whether the time has moved backward without a seek.
        var hasRestartedTime = false
        /// The command of the current seek.
        var lastSeek: [String] = []
        /// The target of the last seek, in seconds, or `nil` if the last seek was a command without a target.
        var seekTarget: Double?
        /// The number of times that the current seek was sent again.
        var repeats = 0
        /// Whether a read was interrupted for the current seek. The result of that read looks like the end.
        var hasInterrupted = false
    }

    var stream: MediaStream? { reader?.stream }

    // The lock of the stream may be acquired while the lock of the playback is held, but not vice versa.

    /// Creates a paused playback and starts loading. If libmpv cannot be started, the item fails, and the result is
    /// `nil`.
    init?(source: Source, item: PlayerItemState, options: PlaybackOptions) {
        guard let handle = MPVHandle(options: options.initial) else {
            _ = item.failed(AVError(.mediaServicesWereReset, detail: MPVHandle.failure))
            return nil
        }
        self.item = item
        self.options = options
        (events, send) = AsyncStream.makeStream()
        state = Mutex(State(handle: handle))
        let target: String
        switch source {
        case .url(let text):
            reader = nil
            target = text
        case .stream(let stream, let name):
            let reader = StreamReader(stream)
            self.reader = reader
            handle.addStream(scheme: "avfoundation", reader)
            target = "avfoundation://\(name)"
        }
        handle.observe(["duration", "time-pos", "demuxer-cache-time", "core-idle", "eof-reached", "pause"])
        item.playbacks.opened()
        let thread = Thread { [self] in
            runEvents(of: handle)
        }
        thread.name = "AVPlayer"
        thread.start()
        handle.command(["loadfile", target], id: 0)
    }

    /// The media to play.
    enum Source: Sendable {
        /// A URL that libmpv opens itself.
        case url(String)
        /// A stream, and its name for libmpv. The name's extension helps to detect the format.
        case stream(MediaStream, name: String)
    }

    // MARK: Commands

    /// Sets the rate.
    ///
    /// - Parameter isStarved: Whether the rate is 0 because there is no data. If so, the item stays starved until it
    ///   plays again.
    func setRate(_ rate: Float, isStarved: Bool = false) {
        let isPlaying = rate != 0
        let speed = isPlaying ? [("speed", String(options.speed(rate: rate)))] : []
        // The lock is held while the change is recorded and sent. Otherwise, a change that is reported in between would
        // be treated as a change by the user.
        set(speed + [("pause", isPlaying ? "no" : "yes")]) { [item] state in
            // If playback starts at the end, the end is reported again. Otherwise, a caller might wait for a player
            // that has no more data.
            if isPlaying, !state.isPlaying { state.isAtEnd = false }
            state.isPlaying = isPlaying
            if isStarved { item.isStarved = true }
        }
    }

    func setVolume(_ volume: Float, isMuted: Bool) {
        // libmpv's volume is the cube root of the gain, in percent.
        let gain = String(100 * cbrt(Double(min(max(volume, 0), 1))))
        set([("volume", gain), ("mute", isMuted ? "yes" : "no")])
    }

    /// Seeks to a time in seconds. Each seek is followed by a `seekFinished` event with the ID.
    func seek(to seconds: Double, id: UInt64) {
        seek(["seek", String(max(0, seconds)), "absolute+exact"], target: max(0, seconds), id: id)
    }

    /// Seeks with a libmpv command.
    func seek(_ command: [String], target: Double? = nil, id: UInt64) {
        let outcome = state.withLock { state -> (replaced: UInt64?, refused: Bool) in
            guard let handle = state.handle, !state.isShutDown, state.isSeekable else { return (nil, true) }
            let replaced = state.seeks.sent(id)
            state.isAtEnd = false
            state.lastSeek = command
            state.seekTarget = target
            state.repeats = 0
            state.hasInterrupted = false
            stream?.expectSeek()
            state.sendSeek(id, handle)
            return (replaced, false)
        }
        if let replaced = outcome.replaced { send.yield(.seekFinished(id: replaced, completed: false)) }
        if outcome.refused { send.yield(.seekFinished(id: id, completed: false)) }
    }

    /// Requests the image that is currently shown. A `picture` event follows.
    func takePicture() {
        call { $0.command(["screenshot-raw", "video"], id: MPVEvent.pictureReply) }
    }

    /// Ends playback. The method returns immediately. Reads fail from now on, and the thread destroys the handle and
    /// ends.
    ///
    /// - Parameter cancelling: Whether to cancel open loading requests. A player that advances to another item does not
    ///   cancel them.
    func shutDown(cancelling: Bool = false) {
        let handle = state.withLock { state in
            defer { state.isShutDown = true }
            return state.isShutDown ? nil : state.handle
        }
        guard handle != nil else { return }
        reader?.close(cancelling: cancelling)
        call(evenWhenShutDown: true) { $0.wakeUp() }
    }

    func set(_ properties: [(name: String, value: String)], noting note: (inout State) -> Void = { _ in }) {
        state.withLock { state in
            note(&state)
            guard let handle = state.handle, !state.isShutDown else { return }
            for property in properties where handle.set(property.name, property.value) { state.unansweredSets += 1 }
        }
    }

    func call(evenWhenShutDown: Bool = false, _ body: (MPVHandle) -> Void) {
        state.withLock { state in
            guard let handle = state.handle, evenWhenShutDown || !state.isShutDown else { return }
            body(handle)
        }
    }
}

/// A tracker of a player's current seek, from the command to the end of the seek. This type only makes decisions.
///
/// libmpv replies to a seek command when the command is queued. It later reports that the demuxer is seeking, and
/// finally that playback has restarted. A later seek replaces an earlier one, whose end is then never reported.
struct SeekTracker: Sendable, Equatable {
    private enum Stage: Sendable, Equatable {
        case sent
        case noted
        case atDemuxer
    }

    private var current: (id: UInt64, stage: Stage)?

    static func == (left: SeekTracker, right: SeekTracker) -> Bool {
        left.current?.id == right.current?.id && left.current?.stage == right.current?.stage
    }

    /// The ID of the current seek, or `nil` if no seek is in progress.
    var pending: UInt64? { current?.id }
    /// Whether the current seek has not reached the demuxer yet.
    var isBeforeDemuxer: Bool { current.map { $0.stage != .atDemuxer } ?? false }

    /// Records a new seek. Returns the ID of the seek that it replaces, if any.
    mutating func sent(_ id: UInt64) -> UInt64? {
        defer { current = (id, .sent) }
        return current?.id
    }

    /// Records that libmpv has queued a seek. Returns whether this is the current seek.
    mutating func noted(_ id: UInt64) -> Bool {
        guard current?.id == id else { return false }
        current?.stage = .noted
        return true
    }

    /// Records that libmpv rejected a seek, and ends the seek if it is the current one. Returns whether it was the
    /// current seek.
    mutating func refused(_ id: UInt64) -> Bool {
        guard current?.id == id else { return false }
        current = nil
        return true
    }

    /// Records that the demuxer is seeking.
    mutating func reachedDemuxer() {
        if current?.stage == .noted { current?.stage = .atDemuxer }
    }

    /// Records that playback continues. Returns the ID of the seek that has finished, if any.
    mutating func restarted() -> UInt64? {
        guard let id = current?.id, current?.stage == .atDemuxer else { return nil }
        current = nil
        return id
    }

    /// Cancels the current seek, if any, and returns its ID.
    mutating func cancel() -> UInt64? {
        defer { current = nil }
        return current?.id
    }
}
