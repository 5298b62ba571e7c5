import ByteRanges

// The results of the planner's inputs.

extension Planner {
    /// An action that the shell performs.
    package enum Action: Equatable {
        /// Request this range from the origin, with the credentials of the reader's source. An upper bound of `nil`
        /// means the end of the resource. The request is conditional if ``isValidation(_:)`` is true.
        case start(TransferID, lower: Int64, upper: Int64?, for: ReaderID)
        /// Cancel the transfer. Bytes that have been received may still be stored.
        case cancel(TransferID)
        /// Let a paused transfer request permission again.
        case resume(TransferID)
        /// Let the reader read again.
        case wake(ReaderID)
        /// Call ``timerFired(_:now:)`` after this time.
        case setTimer(TimerID, after: Duration)
        /// Discard the failure, because no reader receives it anymore.
        case discard(FailureID)
    }

    /// The result of a read at the reader's position.
    package enum ReadDecision: Equatable {
        /// The stored bytes from the reader's position.
        ///
        /// The reader may read stored bytes up to `freeUntil` without reporting its position, because nothing in the
        /// plan changes before that offset. At that offset, or at a missing range after an eviction, it pulls again.
        case stored(Range<Int64>, freeUntil: Int64)
        /// The bytes are not stored yet. The reader is woken later.
        case wait
        /// The reader is at the end of its range or of the resource.
        case end
        /// The range starts past the end, which is at this offset.
        case unsatisfiable(length: Int64)
        /// The bytes at the reader's position cannot be fetched. The shell stores the reason.
        case failed(FailureID)
        /// The resource is being closed, and these bytes will not be fetched.
        case closed
    }

    /// The result for a reader that needs the response headers of its version.
    package enum HeadDecision: Equatable {
        /// There is a version, or only the end of the resource is known.
        case described
        /// The headers are not known yet. The reader is woken when a response has been evaluated.
        case wait
        /// The headers cannot be fetched. The shell stores the reason.
        case failed(FailureID)
        /// The resource is being closed.
        case closed
        /// The reader is closed.
        case gone
    }

    /// The next step of a transfer.
    package enum Permission: Equatable {
        /// Store bytes up to this offset.
        case proceed(upTo: Int64)
        /// Receive no bytes until the transfer is resumed or cancelled.
        case hold
        case stop
    }

    /// The consequence of a transfer that did not receive its requested bytes.
    package enum Outcome: Equatable {
        /// Nothing to report, because the transfer was cancelled, or the request is sent again immediately.
        case none
        /// The bytes are requested again after this time.
        case retries(after: Duration)
        /// Readers of the bytes receive this failure.
        case failed(FailureID)
    }
}
