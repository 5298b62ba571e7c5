import ByteRanges
import SpoolStorage

extension Scheduler {
    /// Decides which bytes of one media file are asked for, when, and when a request is given up.
    ///
    /// No clock, no I/O, no lock. Each input is a mutating function that returns actions for the shell, in order; the
    /// shell performs them after unlocking.
    ///
    /// The plan is incremental. An input notes whom it concerns: readers in the ``ReaderQueue``, transfers to be
    /// reviewed. Then ``plan(_:)`` reviews those transfers and looks for a request for those readers, each from the
    /// whole state, until nothing changes. A planner that looked at everything after each input would say the same;
    /// the tests hold the two against each other.
    struct StateMachine: ~Copyable {
        /// What the shell has to do.
        enum Action: Equatable {
            /// Ask the origin for this range, with what this reader's source has to show for itself; nil upper bound:
            /// to the end. ``isValidation(_:)`` says whether it is conditional.
            case start(TransferID, lower: Int64, upper: Int64?, for: ReaderID)
            /// Give the transfer up; what has arrived of it may still land.
            case cancel(TransferID)
            /// A held transfer may ask for permission again.
            case resume(TransferID)
            /// Let the reader read again.
            case wake(ReaderID)
            /// Call ``timerFired(_:now:)`` after this time.
            case setTimer(TimerID, after: Duration)
            /// No reader will be told this failure any more.
            case discard(FailureID)
        }

        /// What there is for a reader at its position.
        enum ReadDecision: Equatable {
            /// These bytes have landed, from the reader's position on.
            ///
            /// Up to `freeUntil` it may take landed bytes without telling: nothing in the plan changes before it is
            /// there. Then it advances and reads again; also if it meets a hole before that, after an eviction.
            case landed(Range<Int64>, freeUntil: Int64)
            /// Nothing yet; the reader will be woken.
            case wait
            /// The reader is at the end of its range or of the resource.
            case end
            /// The range begins past the end, which is at this offset.
            case unsatisfiable(length: Int64)
            /// The bytes at its position will not come, for a reason that the shell keeps.
            case failed(FailureID)
            /// The resource is being closed, and these bytes will not come.
            case closed
        }

        /// What there is for a reader that asks for the head of its version.
        enum HeadDecision: Equatable {
            /// The version is there; or nothing is but the end of the resource.
            case described
            /// Not yet; the reader is woken when a response has been evaluated.
            case wait
            /// It will not come, for a reason that the shell keeps.
            case failed(FailureID)
            /// The resource is being closed.
            case closed
            /// The reader is.
            case gone
        }

        /// What a transfer may do next.
        enum Permission: Equatable {
            /// Land bytes up to this offset at most.
            case proceed(upTo: Int64)
            /// Take nothing before it is resumed or cancelled.
            case hold
            case stop
        }

        /// What becomes of a transfer that did not bring what was asked for.
        enum Outcome: Equatable {
            /// Nothing to tell: it had been given up, or the request is sent again at once.
            case none
            /// The place is asked for again after this time.
            case retries(after: Duration)
            /// Readers of the place are told this failure.
            case failed(FailureID)
        }

        /// Whether the origin responds to range requests.
        enum RangeSupport: Equatable { case unknown, supported, unsupported }

        // MARK: State

        var landed = ByteRangeSet()
        var length: Int64?
        var rangeSupport = RangeSupport.unknown
        /// Readers that were opened since wait until the origin has said whether what is stored still holds.
        var needsValidation = false
        var isClosing = false
        /// What is known of the line to the origin.
        var link = LinkEstimate()

        var readers: [ReaderID: ReaderState] = [:]
        var demands = DemandIndex()
        var preloadDemands = DemandIndex()
        var waitingPlayback = WaitingReaders()
        var waitingPreloads = WaitingReaders()
        /// Readers in need of a request.
        var queue = ReaderQueue()
        /// Playback readers that wait for bytes that may come now, rather than after a retry.
        var expectantPlayers = 0

        var transfers: [TransferID: TransferState] = [:]
        /// Where former requests ended, and how much the next one there may ask.
        var runs: [Run] = []
        /// Ranges that are being evicted: nothing starts or lands there until they are gone.
        var evicting = ByteRangeSet()
        var failures = FailedPlaces()
        /// Whether a playback reader of another resource waits.
        var isYielding = false
        /// Whether preloads had to yield when transfers were last reviewed.
        var didPreloadsYield = false

        let policy: ReadAheadPolicy
        let retryPolicy: RetryPolicy
        /// The largest window, smaller than the policy's where there is little room.
        var window: Int64
        private var counter = 0
        /// Counts what may have made room for a transfer that lacks it.
        var movements = 0
        /// How many times a reader was planned for, so that a test can hold it against the number of readers.
        var served = 0

        /// - Parameter window: The largest window, in bytes, where room is scarcer than the policy allows for.
        init(policy: ReadAheadPolicy, retryPolicy: RetryPolicy, window: Int64) {
            self.policy = policy.clamped
            self.retryPolicy = retryPolicy.clamped
            self.window = min(max(window, Block.size), 1 << 40)
        }

        /// A number that has not been given before; it orders readers, transfers, tickets, timers and failures by age.
        mutating func next() -> Int {
            counter += 1
            return counter
        }
    }
}

extension Scheduler.StateMachine {
    /// Where a former run of requests stopped, and how much the next one there may ask.
    struct Run {
        var end: Int64
        var nextSize: Int64
    }

    /// Whether a playback reader waits for bytes that may come now: not for those of a place that is to be tried later.
    var isPlaybackWaiting: Bool { expectantPlayers > 0 }

    /// Whether transfers that only preload hold, and no more of them start.
    var mustPreloadsYield: Bool { isYielding || expectantPlayers > 0 }
}

// MARK: - Conducting

extension Scheduler.StateMachine {
    /// A playback reader of another resource waits, or no longer does: what only preloads holds meanwhile.
    mutating func setYielding(_ yields: Bool) -> [Action] {
        isYielding = yields
        return plan()
    }

    /// There is less room than the policy's window; it is never widened again.
    mutating func limitWindow(to bytes: Int64) -> [Action] {
        window = min(window, max(bytes, Block.size))
        renewDemands()
        return plan()
    }
}
