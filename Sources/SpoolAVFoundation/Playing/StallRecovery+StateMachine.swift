#if canImport(AVFoundation) && !os(watchOS)
extension StallRecovery {
    /// Decides when a player that has run dry is to play on, and at which rate.
    ///
    /// Pure. It goes by the player's state whenever anything may have changed, not by any one notification: a stall may
    /// be announced, or not, or late. While it waits for bytes it lets the player wait, with its rate set, so that a
    /// person's pause is a change of the rate and can be told from the stall.
    struct StateMachine: Hashable, Sendable {
        /// Where playing stands.
        enum State: Hashable, Sendable {
            /// Nobody wants it to play. Exits: playing (the rate is set).
            case paused
            /// It plays, or is about to. Exits: paused (by the app, a person, the system or the end), stalled.
            case playing
            /// It has run dry, and is to play on. Exits: playing (it does), paused (by the app or a person).
            case stalled
        }

        /// What a player and its item say of themselves now.
        struct Snapshot: Hashable, Sendable {
            enum Status: Hashable, Sendable { case paused, waiting, playing }
            var status: Status
            var rate: Float
            /// The buffer is empty, or the player doubts that it will last.
            var isDry: Bool
            /// It says that it could play on, or that it can't take more.
            var isReady: Bool
            /// The position is the end of the item.
            var isAtEnd: Bool
        }

        /// Why a rate has changed.
        enum Reason: Hashable, Sendable {
            /// The app has set it, for a person or by itself.
            case app
            /// An interruption, or the app went to the background.
            case system
            /// None was given.
            case unknown
        }

        /// What has happened.
        enum Input: Hashable, Sendable {
            case rateChanged(Reason)
            /// A stall was announced.
            case stallAnnounced
            /// Enough bytes have come to play on for a while.
            case bytesCame
            case ended
            case itemChanged
            /// Time has passed, or something else may have changed.
            case tick
        }

        /// A step for the shell.
        enum Action: Hashable, Sendable {
            /// Let the player wait for media, with the rate that it is to play at.
            case wait(rate: Float)
            /// Play what there is, at the rate.
            case play(rate: Float)
            /// Seek to where the item stands: a player that has stopped asking for bytes asks again.
            case seekInPlace
            /// Waiting is over: a player with a loader's media is not to wait by itself.
            case stopWaiting
        }

        private(set) var state = State.paused
        /// The rate that is wanted; kept over stalls and failures.
        private(set) var rate: Float = 1
        /// Whether the last pause came with no word of who wanted it: a stall that is announced afterwards explains it.
        private var isPauseDoubtful = false
        /// Ticks since playing on was last tried, while stalled.
        private var ticks = 0
        /// Ticks that a stall may last although the player says it could play on, before it is made to ask again.
        static let patience = 10

        mutating func handle(_ input: Input, _ now: Snapshot) -> [Action] {
            switch input {
            case .rateChanged(let reason): rateChanged(reason, now)
            case .stallAnnounced: stallAnnounced(now)
            case .bytesCame: state == .stalled ? playOn() : []
            case .ended: pause()
            case .itemChanged: itemChanged(now)
            case .tick: look(now, isTick: true)
            }
        }

        // MARK: Inputs

        private mutating func rateChanged(_ reason: Reason, _ now: Snapshot) -> [Action] {
            if now.rate != 0 {
                rate = now.rate
                isPauseDoubtful = false
                if state == .paused { state = .playing }
                return look(now, isTick: false)
            }
            if reason == .system { isPauseDoubtful = false }
            guard state != .paused else { return [] }
            // Without a reason, a player that has nothing to play has stalled.
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
            // An item that took the place of one that had stalled is to play.
            state = now.rate != 0 || state == .stalled ? .playing : .paused
            isPauseDoubtful = false
            return actions
        }

        private mutating func look(_ now: Snapshot, isTick: Bool) -> [Action] {
            switch (state, now.status) {
            case (.playing, .paused) where now.rate == 0 && isTick:
                // Stopped, and nobody said so.
                return now.isAtEnd ? pause() : now.isDry ? stall() : []
            case (.stalled, .playing):
                state = .playing
                return [.stopWaiting]
            case (.stalled, .paused) where now.rate == 0:
                return now.isReady ? playOn() : [.wait(rate: rate)]
            case (.stalled, _) where isTick:
                ticks += 1
                if ticks >= Self.patience {
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

        private mutating func playOn() -> [Action] {
            ticks = 0
            return [.play(rate: rate)]
        }

        /// The app wants the player to be left alone.
        mutating func cancel() -> [Action] { pause() }
    }
}
#endif
