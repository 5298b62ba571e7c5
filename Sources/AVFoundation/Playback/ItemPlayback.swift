import CMPV
import Foundation
import Synchronization

/// One item being played by one libmpv handle: a thread of its own reads libmpv's events.
///
/// Commands come from any thread and do not wait. Events go out through ``events``, which ends when the handle is
/// gone. Nobody else keeps the handle: ``shutDown()`` is all that a player has to call.
final class ItemPlayback: Sendable {
    let events: AsyncStream<PlaybackEvent>
    let item: PlayerItemState
    private let reader: StreamReader?
    let options: PlaybackOptions

    let send: AsyncStream<PlaybackEvent>.Continuation
    let state: Mutex<State>

    struct State: Sendable {
        /// Nil once the handle is being destroyed. Every call but the wait for events is made under the lock, so
        /// that none can meet a destroyed handle.
        var handle: MPVHandle?
        var seeks = SeekTracker()
        var isShutDown = false
        var isLoaded = false
        var isSeekable = false
        /// Whether it is a stream that had no end when it was opened.
        var isLive = false
        /// Whether the rate is not 0.
        var isPlaying = false
        /// Properties that were set and have not been answered for.
        var unansweredSets = 0
        var isAtEnd = false
        /// Whether the time has gone back by itself.
        var hasRestartedTime = false
        /// The command of the seek under way.
        var lastSeek: [String] = []
        /// The target of the last seek, in seconds; `nil` if the last seek was a command without one.
        var seekTarget: Double?
        /// How often the seek under way was sent again.
        var repeats = 0
        /// Whether a read was made to return for the seek under way: what it read then looks like the end.
        var hasInterrupted = false
    }

    var stream: MediaStream? { reader?.stream }

    // The stream's lock is taken within the playback's here and there, and never the other way round.

    /// Starts loading, paused. Nil if libmpv cannot be started, which the item then says.
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
        /// Something that libmpv opens itself.
        case url(String)
        /// A stream, and the name that libmpv is to know it by: its extension helps to tell the format.
        case stream(MediaStream, name: String)
    }

    // MARK: Commands

    /// - Parameter isStarved: Whether it is 0 because there is nothing to play: then that is so until it plays again.
    func setRate(_ rate: Float, isStarved: Bool = false) {
        let isPlaying = rate != 0
        let speed = isPlaying ? [("speed", String(options.speed(rate: rate)))] : []
        // Known and sent as one: between the two, a change that was told would be taken for the person's.
        set(speed + [("pause", isPlaying ? "no" : "yes")]) { [item] state in
            // Played again where it has ended, it ends again: nobody is left waiting for a player that has nothing to play.
            if isPlaying, !state.isPlaying { state.isAtEnd = false }
            state.isPlaying = isPlaying
            if isStarved { item.isStarved = true }
        }
    }

    func setVolume(_ volume: Float, isMuted: Bool) {
        // libmpv's volume is the cube root of the gain, in per cent.
        let gain = String(100 * cbrt(Double(min(max(volume, 0), 1))))
        set([("volume", gain), ("mute", isMuted ? "yes" : "no")])
    }

    /// Seeks to a number of seconds. A `seekFinished` event with the id follows, for every seek.
    func seek(to seconds: Double, id: UInt64) {
        seek(["seek", String(max(0, seconds)), "absolute+exact"], target: max(0, seconds), id: id)
    }

    /// Seeks by a command of libmpv's.
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

    /// Asks for what it shows; a `picture` event follows.
    func takePicture() {
        call { $0.command(["screenshot-raw", "video"], id: MPVEvent.pictureReply) }
    }

    /// Ends playback: reads fail, the thread leaves, the handle is destroyed there. Returns at once.
    ///
    /// - Parameter cancelling: whether open loading requests are called off, which a player does not do that moves on.
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
