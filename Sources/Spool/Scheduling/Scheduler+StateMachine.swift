import ByteRanges
import SpoolStorage

extension Scheduler {
    /// Decides which bytes of one resource are requested, when, and when a request is cancelled.
    ///
    /// It has no clock, no I/O and no lock. Each input is a mutating function that returns actions for the shell, in
    /// order. The shell performs them after unlocking.
    ///
    /// The plan is incremental. An input notes which readers it concerns, in the queue of the ``ReaderTable``, and which
    /// transfers. Then ``plan(_:)`` reviews those transfers and finds requests for those readers, until nothing changes.
    /// A planner that examined everything after each input would decide the same. Tests compare the two.
    struct StateMachine: ~Copyable {
        /// A task for the shell.
        enum Action: Equatable {
            /// Request this range from the origin, with the credentials of the reader's source. An upper bound of `nil`
            /// is the end. The request is conditional if ``isValidation(_:)`` is true.
            case start(TransferID, lower: Int64, upper: Int64?, for: ReaderID)
            /// Cancel the transfer. Bytes that have been received may still be stored.
            case cancel(TransferID)
            /// A paused transfer may request permission again.
            case resume(TransferID)
            /// Let the reader read again.
            case wake(ReaderID)
            /// Call ``timerFired(_:now:)`` after this time.
            case setTimer(TimerID, after: Duration)
            /// No reader receives this failure any more.
            case discard(FailureID)
        }

        /// The result of a read at the reader's position.
        enum ReadDecision: Equatable {
            /// These bytes are stored, from the reader's position on.
            ///
            /// The reader may take stored bytes up to `freeUntil` without reporting its position, because nothing in the
            /// plan changes before. There, or at a missing range after an eviction, it pulls again.
            case landed(Range<Int64>, freeUntil: Int64)
            /// No bytes yet. The reader is woken later.
            case wait
            /// The reader is at the end of its range or of the resource.
            case end
            /// The range starts past the end, which is at this offset.
            case unsatisfiable(length: Int64)
            /// The bytes at its position cannot be fetched. The shell stores the reason.
            case failed(FailureID)
            /// The resource is being closed, and these bytes will not be fetched.
            case closed
        }

        /// The result for a reader that wants the response headers of its version.
        enum HeadDecision: Equatable {
            /// There is a version, or only the end of the resource is known.
            case described
            /// Not yet. The reader is woken when a response has been evaluated.
            case wait
            /// The headers cannot be fetched. The shell stores the reason.
            case failed(FailureID)
            /// The resource is being closed.
            case closed
            /// The reader is closed.
            case gone
        }

        /// The next step of a transfer.
        enum Permission: Equatable {
            /// Store bytes up to this offset at most.
            case proceed(upTo: Int64)
            /// Take no bytes before it is resumed or cancelled.
            case hold
            case stop
        }

        /// The consequence of a transfer that did not receive the bytes that it requested.
        enum Outcome: Equatable {
            /// Nothing to report: it was cancelled, or the request is sent again at once.
            case none
            /// The bytes are requested again after this time.
            case retries(after: Duration)
            /// Readers of the bytes receive this failure.
            case failed(FailureID)
        }

        /// Whether the origin supports range requests.
        enum RangeSupport: Equatable { case unknown, supported, unsupported }

        // MARK: State

        var stored = StoredRanges()
        var readers = ReaderTable()
        var transfers: TransferTable
        var failures = FailedPlaces()
        var rangeSupport = RangeSupport.unknown
        /// Whether readers that open from now on wait until the origin has validated the stored bytes.
        var needsValidation = false
        var isClosing = false
        /// An estimate of the connection to the origin.
        var link = LinkEstimate()
        /// Whether a playback reader of another resource waits.
        var isYielding = false
        /// Whether preloads had to yield when the transfers were last reviewed.
        var didPreloadsYield = false

        let policy: ReadAheadPolicy
        let retryPolicy: RetryPolicy
        /// The size of the largest window, in bytes. It is smaller than the policy's if space is scarce.
        var window: Int64
        private var counter = 0
        /// Counts the events that may have freed space for a transfer that lacks it.
        var movements = 0

        /// - Parameter window: The size of the largest window, in bytes, if space is scarcer than the policy assumes.
        init(policy: ReadAheadPolicy, retryPolicy: RetryPolicy, window: Int64) {
            self.policy = policy.clamped
            self.retryPolicy = retryPolicy.clamped
            self.window = min(max(window, Block.size), 1 << 40)
            transfers = TransferTable(self.policy)
        }

        /// A number that was not returned before. It orders readers, transfers, tickets, timers and failures by age.
        mutating func next() -> Int {
            counter += 1
            return counter
        }
    }
}

extension Scheduler.StateMachine {
    /// All stored bytes.
    var landed: ByteRangeSet { stored.ranges }

    /// The length of the resource. `nil` if it is not known.
    var length: Int64? { stored.length }

    var readAhead: ReadAhead {
        ReadAhead(
            firstRequest: policy.firstRequest, largestWindow: min(policy.window, window), inTransit: link.underWay,
            length: stored.length)
    }

    /// Whether a playback reader waits for bytes that may be received now, rather than after a retry.
    var isPlaybackWaiting: Bool { readers.expectantPlayers > 0 }

    /// Whether transfers pause that only preloads need, and no more of them start.
    var mustPreloadsYield: Bool { isYielding || isPlaybackWaiting }

    /// A playback reader of another resource waits, or no longer waits. Until then, transfers for preloads pause.
    mutating func setYielding(_ yields: Bool) -> [Action] {
        isYielding = yields
        return plan()
    }

    /// There is less space than the policy's window. The window is never enlarged again.
    mutating func limitWindow(to bytes: Int64) -> [Action] {
        window = min(window, max(bytes, Block.size))
        readers.renewDemands(readAhead)
        return plan()
    }
}
