#if canImport(AVFoundation) && !os(watchOS)
extension StallRecovery {
    /// A state machine that decides when a player without data resumes, and at which rate.
    ///
    /// The state machine does not perform actions itself. It examines the player's state after every possible change
    /// instead of relying on a single notification, because stalls may be reported late or never. During a stall, the
    /// player waits for bytes while its rate is set. A pause by the user changes the rate, so it can be distinguished
    /// from the stall.
    struct StateMachine: Hashable, Sendable {
        /// The state of playback.
        enum State: Hashable, Sendable {
            /// Playback is not requested. Exits: playing (the rate is set).
            case paused
            /// Playback is requested. Exits: paused (by the app, a user, the system or the end), stalled.
            case playing
            /// The player has no data, and playback will resume. Exits: playing (playback resumed), paused (by the app
            /// or a user).
            case stalled
        }

        /// The current state of a player and its item.
        struct Snapshot: Hashable, Sendable {
            enum Status: Hashable, Sendable { case paused, waiting, playing }
            var status: Status
            var rate: Float
            /// Whether the buffer is empty, or the player does not expect the buffer to suffice.
            var isDry: Bool
            /// Whether the player could resume, or its buffer is full.
            var isReady: Bool
            /// Whether the position is at the end of the item.
            var isAtEnd: Bool
        }

        /// The reason why a rate changed.
        enum Reason: Hashable, Sendable {
            /// The app set the rate, for a user or automatically.
            case app
            /// An interruption occurred, or the app moved to the background.
            case system
            /// No reason was given.
            case unknown
        }

        /// An input of the state machine.
        enum Input: Hashable, Sendable {
            case rateChanged(Reason)
            /// A stall was reported.
            case stallAnnounced
            /// Enough bytes were delivered to resume playback.
            case bytesReceived
            case ended
            case itemChanged
            /// A second has passed during a stall, or the player's state may have changed.
            case tick
        }

        /// An action.
        enum Action: Hashable, Sendable {
            /// Let the player wait for media, and set its rate to the one at which to resume.
            case wait(rate: Float)
            /// Play the available media at the rate.
            case play(rate: Float)
            /// Seek to the current position, so that a player that has stopped requesting bytes starts again.
            case seekInPlace
            /// Stop automatic waiting, because a player must not wait automatically for media from a loader.
            case stopWaiting
        }

        private(set) var state = State.paused
        /// The requested rate, which is retained during stalls and failures.
        private(set) var rate: Float = 1
        /// Whether the last pause had no reason. A stall that is reported afterward explains the pause.
        private var isPauseDoubtful = false
        /// The number of ticks since the last attempt to resume, while stalled.
        private var ticks = 0
        /// The number of ticks after which a player that is still stalled seeks to its current position, so that it
        /// sends requests again.
        static let seekTicks = 10

        mutating func handle(_ input: Input, _ now: Snapshot) -> [Action] {
            switch input {
            case .rateChanged(let reason): rateChanged(reason, now)
            case .stallAnnounced: stallAnnounced(now)
            case .bytesReceived: state == .stalled ? resumePlayback() : []
            case .ended: pause()
            case .itemChanged: itemChanged(now)
            case .tick: check(now, isTick: true)
            }
        }

        // MARK: Inputs

        private mutating func rateChanged(_ reason: Reason, _ now: Snapshot) -> [Action] {
            if now.rate != 0 {
                rate = now.rate
                isPauseDoubtful = false
                if state == .paused { state = .playing }
                return check(now, isTick: false)
            }
            if reason == .system { isPauseDoubtful = false }
            guard state != .paused else { return [] }
            // A player that has no data and reports no reason has stalled.
            if reason == .unknown, now.isDry, !now.isAtEnd { return stall() }
            let actions = pause()
            isPauseDoubtful = reason != .system && !now.isAtEnd
            return actions
        }

        private mutating func stallAnnounced(_ now: Snapshot) -> [Action] {
            guard !now.isAtEnd, state == .playing || isPauseDoubtful else { return [] }
            return stall()
        }

        private mutating func itemChanged(_ now: Snapshot) -> [Action] {
            let actions: [Action] = state == .stalled ? [.stopWaiting] : []
            if now.rate != 0 { rate = now.rate }
            // An item that replaced a stalled one is expected to play.
            state = now.rate != 0 || state == .stalled ? .playing : .paused
            isPauseDoubtful = false
            return actions
        }

        private mutating func check(_ now: Snapshot, isTick: Bool) -> [Action] {
            switch (state, now.status) {
            case (.playing, .paused) where now.rate == 0 && isTick:
                // The player stopped without a notification.
                return now.isAtEnd ? pause() : now.isDry ? stall() : []
            case (.stalled, .playing):
                state = .playing
                return [.stopWaiting]
            case (.stalled, .paused) where now.rate == 0:
                return now.isReady ? resumePlayback() : [.wait(rate: rate)]
            case (.stalled, _) where isTick:
                ticks += 1
                if ticks >= Self.seekTicks {
                    ticks = 0
                    return [.seekInPlace, .play(rate: rate)]
                }
                return now.isReady ? [.play(rate: rate)] : []
            default:
                return []
            }
        }

        // MARK: Decisions

        private mutating func stall() -> [Action] {
            guard state != .stalled else { return [] }
            state = .stalled
            isPauseDoubtful = false
            ticks = 0
            return [.wait(rate: rate)]
        }

        private mutating func pause() -> [Action] {
            defer { state = .paused }
            isPauseDoubtful = false
            return state == .stalled ? [.stopWaiting] : []
        }

        private mutating func resumePlayback() -> [Action] {
            ticks = 0
            return [.play(rate: rate)]
        }

        /// Cancels the recovery at the app's request.
        mutating func cancel() -> [Action] { pause() }
    }
}
#endif
