package import ByteRanges

/// Names one reader of an open resource.
package struct ReaderID: Hashable, Comparable, Sendable {
    let number: Int
    package static func < (a: ReaderID, b: ReaderID) -> Bool { a.number < b.number }
}

/// Names one transfer of an open resource.
package struct TransferID: Hashable, Comparable, Sendable {
    let number: Int
    package static func < (a: TransferID, b: TransferID) -> Bool { a.number < b.number }
}

/// What matters more: a player that waits, or bytes landed for later.
package enum Priority: Int, Comparable, Sendable {
    case preload, playback
    package static func < (a: Priority, b: Priority) -> Bool { a.rawValue < b.rawValue }
}

extension Scheduler {
    /// Decides which bytes of one media file are asked for, when, and when a request is given up.
    ///
    /// No clock, no I/O, no lock. Each input is a mutating function that returns actions for the shell, in order; the
    /// shell performs them after unlocking. Whatever happened, the same ``plan()`` looks at the whole state and says
    /// what is to be done now: no decision depends on how the state was reached.
    package struct StateMachine: ~Copyable {
        /// What the shell has to do.
        package enum Action: Equatable {
            /// Ask the origin for this range; nil upper bound: to the end.
            case start(TransferID, lower: Int64, upper: Int64?)
            /// Give the transfer up.
            case cut(TransferID)
            /// A held transfer may pull again.
            case resume(TransferID)
            /// Let the reader look again.
            case wake(ReaderID)
            /// Call ``graceEnded(_:epoch:)`` after this time.
            case grace(TransferID, epoch: Int, after: Duration)
            /// Call ``retryDue(epoch:)`` after this time.
            case retry(epoch: Int, after: Duration)
        }

        /// What a reader finds at its position.
        package enum Look: Equatable {
            /// These bytes have landed, from the reader's position on.
            case landed(Range<Int64>)
            /// Nothing yet; the reader will be woken.
            case wait
            /// The reader is at the end of its range or of the resource.
            case end
            /// The range begins past the end, which is at this offset.
            case unsatisfiable(length: Int64)
            /// The origin failed for good; the shell keeps the error.
            case failed
            /// The resource is being closed, and these bytes will not come.
            case closed
        }

        /// What a transfer may do next.
        package enum Permission: Equatable {
            /// Land bytes up to this offset at most.
            case go(upTo: Int64)
            case hold
            case stop
        }

        struct ReaderState {
            var start: Int64
            var position: Int64
            /// Exclusive; nil: to the end of the resource.
            var end: Int64?
            var priority: Priority
            /// Ascending tickets order those that wait; nil: not waiting.
            var ticket: Int?
            /// Whether it has found bytes of the current generation, which it may hand out any time.
            var hasRead = false
        }

        /// A transfer: asking (until its head has come) → streaming → gone. `isCut` may come in either.
        ///
        /// One that is cut lands what has arrived of it already, which takes a moment; what it may bring until it is gone
        /// is asked for by no other.
        struct TransferState {
            var position: Int64
            /// Where the request ends; nil: to the end of the body.
            var end: Int64?
            var size: Int64
            var isStreaming = false
            var hasLanded = false
            var isHeld = false
            var lacksSpace = false
            var spaceTicket = 0
            var isCut = false
            /// Its bytes belong to another generation, and none of them may land any more.
            var isStale = false
            /// Set while nobody wants it.
            var unwantedEpoch: Int?
            /// The origin sends its whole body from the start; position runs through what has landed.
            var isSequential = false
        }

        /// Where a former run of requests stopped, and how much the next one there may ask.
        struct Run {
            var end: Int64
            var nextSize: Int64
        }

        /// Whether the origin responds range requests.
        package enum RangeSupport: Equatable { case unknown, supported, unsupported }

        package private(set) var landed = ByteRangeSet()
        package private(set) var length: Int64?
        package var rangeSupport = RangeSupport.unknown
        var link = LinkEstimate()
        private(set) var readers: [ReaderID: ReaderState] = [:]
        var transfers: [TransferID: TransferState] = [:]
        var runs: [Run] = []
        /// Ranges that are being evicted: nothing may start there until they are gone.
        var dropping = ByteRangeSet()
        let policy: ReadAheadPolicy
        private let retryPolicy: RetryPolicy
        /// The window, smaller than the policy's where the capacity is small.
        package var window: Int64
        var counter = 0
        var ticket = 0
        private var failures = 0
        private var restarts = 0
        var retryEpoch: Int?
        var hasFailed = false
        /// Until the origin has said whether what is stored still holds, readers wait.
        package private(set) var needsValidation = false
        package private(set) var isClosing = false

        package init(policy: ReadAheadPolicy, retryPolicy: RetryPolicy, window: Int64) {
            self.policy = policy
            self.retryPolicy = retryPolicy
            self.window = max(window, Block.size)
        }
    }
}

// MARK: - Stored state

extension Scheduler.StateMachine {
    /// What an opened generation holds.
    package mutating func opened(landed: ByteRangeSet, length: Int64?, needsValidation: Bool) -> [Action] {
        self.landed = landed
        self.length = length
        self.needsValidation = needsValidation
        return plan(waking: .all)
    }

    /// The stored generation is still the origin's.
    package mutating func validated() -> [Action] {
        needsValidation = false
        return plan(waking: .all)
    }

    /// The total length has been told.
    package mutating func lengthLearnt(_ length: Int64) -> [Action] {
        guard self.length != length else { return [] }
        self.length = length
        return plan(waking: .all)
    }

    /// Another generation takes the place of the current one; `kept` is the transfer that brings it, if any.
    ///
    /// - Returns: The readers that are in the former one, now unknown here, and what to do.
    package mutating func generationChanged(
        length: Int64?, keeping kept: TransferID?
    ) -> (left: [ReaderID], actions: [Action]) {
        landed = ByteRangeSet()
        dropping = ByteRangeSet()
        runs = []
        self.length = length
        needsValidation = false
        let left = readers.filter { $0.value.hasRead }.map(\.key).sorted()
        for id in left { readers[id] = nil }
        var actions: [Action] = []
        for id in transfers.keys.sorted() where id != kept {
            transfers[id]?.isStale = true
            actions += cut(id)
        }
        return (left, actions + plan(waking: .all))
    }

    /// Which stored bytes may go to make room: outside every reader's window, furthest behind first.
    ///
    /// The ranges, of whole blocks and about `count` bytes, are holes from now on; call ``dropped(_:)`` when the disk
    /// has let go of them.
    package mutating func release(_ count: Int64, within place: ByteRangeSet? = nil) -> [Range<Int64>] {
        var free = place.map { landed.intersection($0) } ?? landed
        for reader in readers.values { free.remove(keepRange(of: reader)) }
        for transfer in transfers.values where !transfer.isStale {
            free.remove(Block.roundDown(transfer.position)..<blockEnd(at: transfer.position))
        }
        let foremost = readers.values.map(\.position).max() ?? 0
        var released: [Range<Int64>] = []
        var remaining = count
        // What has landed begins at block starts, and so does what is free of it.
        func take(_ range: Range<Int64>) {
            guard remaining > 0, !range.isEmpty else { return }
            let size = min(remaining, range.upperBound - range.lowerBound)
            let upper = min(range.upperBound, Block.roundUp(range.lowerBound + size))
            released.append(range.lowerBound..<upper)
            remaining -= upper - range.lowerBound
        }
        for range in free.intersection(0..<foremost) { take(range) }
        for range in free.intersection(foremost..<Block.offsetLimit).reversed() {
            // From the far end: the head of a file is what a next play needs first.
            guard remaining > 0 else { break }
            take(max(range.lowerBound, Block.roundDown(max(range.upperBound - remaining, 0)))..<range.upperBound)
        }
        for range in released {
            landed.remove(range)
            dropping.insert(range)
        }
        return released
    }

    /// The disk has let go of what ``release(_:within:)`` returned, except for `kept`, which is in use after all.
    package mutating func dropped(_ ranges: [Range<Int64>], kept: ByteRangeSet) -> [Action] {
        for range in ranges {
            dropping.remove(range)
            landed.formUnion(kept.intersection(range))
        }
        return plan(waking: .all)
    }

    /// Stored bytes turned out bad and are gone.
    package mutating func lost(_ range: Range<Int64>) -> [Action] {
        landed.remove(range)
        return plan()
    }

    /// The shell is closing: nothing is started, and what is not nearly done is cut.
    package mutating func close() -> [Action] {
        isClosing = true
        var actions = readers.keys.sorted().map { Action.wake($0) }
        for (id, transfer) in transfers.sorted(by: { $0.key < $1.key }) where !isNearlyDone(transfer) {
            actions += cut(id)
        }
        return actions
    }

    /// What was let in took too long.
    package mutating func cutAll() -> [Action] {
        guard isClosing else { return [] }
        return transfers.keys.sorted().flatMap { cut($0) }
    }

    /// A closing resource is wanted again.
    package mutating func reopen() { isClosing = false }
}

// MARK: - Readers

extension Scheduler.StateMachine {
    /// A reader wants `start ..< end`; nil end: to the end of the resource.
    package mutating func openReader(at start: Int64, end: Int64?, priority: Priority) -> (ReaderID, [Action]) {
        counter += 1
        let id = ReaderID(number: counter)
        readers[id] = ReaderState(start: start, position: start, end: end, priority: priority)
        if hasFailed, retryEpoch == nil {
            hasFailed = false
            failures = 0
            restarts = 0
        }
        return (id, plan())
    }

    /// The reader has taken all before `position`.
    package mutating func advance(_ id: ReaderID, to position: Int64) -> [Action] {
        guard var reader = readers[id], position > reader.position else { return [] }
        reader.position = position
        readers[id] = reader
        ticket += 1
        return plan()
    }

    /// What there is at the reader's position, at most `limit` bytes; a reader that has to wait will be woken.
    package mutating func look(_ id: ReaderID, limit: Int64) -> (Look, [Action]) {
        guard var reader = readers[id] else { return (.end, []) }
        if !needsValidation {
            if let length, reader.start >= length, reader.start > 0 { return (.unsatisfiable(length: length), []) }
            let end = min(reader.end ?? .max, length ?? .max)
            if reader.position >= end { return (.end, []) }
            if let found = landed.prefix(at: reader.position) {
                let hasWaited = reader.ticket != nil
                reader.ticket = nil
                reader.hasRead = true
                readers[id] = reader
                let upper = min(min(found.upperBound, end) - reader.position, limit) + reader.position
                // What yielded to it may go on, even if it never moves again.
                return (.landed(reader.position..<upper), hasWaited ? plan() : [])
            }
        }
        if hasFailed || isClosing {
            readers[id]?.ticket = nil
            return (hasFailed ? .failed : .closed, [])
        }
        // One that waits already is planned for, and with many readers a plan is not for nothing.
        guard reader.ticket == nil else { return (.wait, []) }
        ticket += 1
        reader.ticket = ticket
        readers[id] = reader
        return (.wait, plan())
    }

    /// The reader is gone.
    package mutating func closeReader(_ id: ReaderID) -> [Action] {
        guard readers.removeValue(forKey: id) != nil else { return [] }
        ticket += 1
        return plan()
    }
}

// MARK: - Transfers

extension Scheduler.StateMachine {
    /// The head of a response has come: its bytes land from `offset`, and end before `end` if that is known.
    package mutating func transferStreams(
        _ id: TransferID, at offset: Int64, end: Int64?, isWhole: Bool, isSequential: Bool
    ) -> [Action] {
        guard var transfer = transfers[id], !transfer.isStale else { return [] }
        if isSequential, !needsBody(beside: id) {
            transfers[id]?.isStale = true
            return cut(id) + plan()
        }
        transfer.isStreaming = true
        transfer.isSequential = isSequential
        transfer.position = offset
        transfer.end = isWhole ? end : (transfer.end.map { min($0, end ?? $0) } ?? end)
        transfers[id] = transfer
        return plan()
    }

    /// Whether another whole body is of use: not where the one on its way will come to all that is waited for.
    private func needsBody(beside id: TransferID) -> Bool {
        let others = transfers.filter { $0.key != id && $0.value.isSequential && !$0.value.isCut }
        guard let first = others.values.map(\.position).min() else { return true }
        return readers.values.contains { reader in
            guard reader.ticket != nil, !wantedRange(of: reader).isEmpty else { return false }
            return landed.firstHole(in: wantedRange(of: reader)).map { $0.lowerBound < first } ?? false
        }
    }

    /// What the transfer may do before it pulls its next chunk.
    package mutating func permission(_ id: TransferID) -> Permission {
        guard var transfer = transfers[id], !transfer.isStale else { return .stop }
        let limit = limit(of: id, transfer)
        if transfer.position >= limit { return .stop }
        if transfer.isSequential, landed.contains(transfer.position..<min(limit, length ?? .max)) { return .stop }
        if !transfer.isCut, !mayGo(transfer) {
            transfer.isHeld = true
            transfers[id] = transfer
            return .hold
        }
        return .go(upTo: limit)
    }

    /// Where the transfer is; nil if it is over.
    package func position(of id: TransferID) -> Int64? { transfers[id]?.position }

    /// Whether bytes of the transfer may land no more.
    package func isStale(_ id: TransferID) -> Bool { transfers[id]?.isStale ?? true }

    /// Whether the transfer has been given up, or is over.
    package func isCut(_ id: TransferID) -> Bool { transfers[id]?.isCut ?? true }

    /// Whether the transfer was told to hold, and not yet to resume.
    package func isHeld(_ id: TransferID) -> Bool { transfers[id].map { $0.isHeld && !$0.isCut } ?? false }

    /// Whether what has landed, or what the origin is sending by its own word, ends exactly at `offset`.
    package func reaches(_ offset: Int64) -> Bool {
        let coming = transfers.values.filter { $0.isStreaming && !$0.isCut }.compactMap(\.end).max() ?? 0
        return offset > 0 && max(coming, landed.bounds?.upperBound ?? 0) == offset
    }

    /// Whether retries are spent, or no retry would help.
    package var hasGivenUp: Bool { hasFailed }

    /// Bytes of the transfer have landed.
    package mutating func landed(_ range: Range<Int64>, by id: TransferID) -> [Action] {
        landed.insert(range)
        failures = 0
        restarts = 0
        hasFailed = false
        if var transfer = transfers[id] {
            transfer.position = max(transfer.position, range.upperBound)
            transfer.hasLanded = true
            transfers[id] = transfer
        }
        return plan(waking: .within(range))
    }

    /// There was no room for the transfer's next bytes; it holds until a reader moves on, unless one waits for them.
    package mutating func transferLacksSpace(_ id: TransferID) -> (Permission, [Action]) {
        guard var transfer = transfers[id], !transfer.isCut else { return (.stop, []) }
        guard !isAwaited(transfer) else { return (.go(upTo: limit(of: id, transfer)), []) }
        transfer.lacksSpace = true
        transfer.isHeld = true
        transfer.spaceTicket = ticket
        transfers[id] = transfer
        return (.hold, plan())
    }

    /// Whether somebody waits for bytes that the transfer brings next, or on its way.
    package func isAwaited(_ id: TransferID) -> Bool { transfers[id].map { isAwaited($0) } ?? false }

    func isAwaited(_ transfer: TransferState, by priority: Priority = .preload) -> Bool {
        readers.values.contains { reader in
            reader.ticket != nil && reader.priority >= priority
                && reader.position >= Block.roundDown(transfer.position)
                && reader.position < transfer.end ?? .max
        }
    }

    /// The transfer is over: its last byte has landed, or it had nothing to bring.
    package mutating func transferEnded(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id] else { return [] }
        // A response that brings nothing may lead to the same request again, and so for ever.
        guard transfer.isCut || transfer.hasLanded else { return transferRestarts(id) }
        transfers[id] = nil
        note(run: transfer)
        return plan()
    }

    /// The transfer failed and may be tried again: no response, a cut body, a status such as 503.
    package mutating func transferFailed(_ id: TransferID, retryAfter: Duration?, jitter: Double) -> [Action] {
        guard let transfer = transfers.removeValue(forKey: id) else { return [] }
        note(run: transfer)
        guard !transfer.isCut else { return plan() }
        guard retryEpoch == nil else { return [] }
        failures += 1
        guard failures <= retryPolicy.retries else { return fail() }
        counter += 1
        retryEpoch = counter
        let delay = retryPolicy.delay(attempt: failures, retryAfter: retryAfter, jitter: jitter)
        return [.retry(epoch: counter, after: delay)]
    }

    /// The transfer failed in a way that no retry cures.
    package mutating func transferRefused(_ id: TransferID) -> [Action] {
        guard let transfer = transfers.removeValue(forKey: id) else { return [] }
        return transfer.isCut ? plan() : fail()
    }

    /// The transfer's response was of no use, but the same need may be asked for anew at once.
    package mutating func transferRestarts(_ id: TransferID) -> [Action] {
        guard let transfer = transfers.removeValue(forKey: id) else { return [] }
        guard !transfer.isCut else { return plan() }
        restarts += 1
        return restarts > retryPolicy.retries + policy.transfersPerResource ? fail() : plan()
    }

    /// The time of ``Action/retry(epoch:after:)`` has come.
    package mutating func retryDue(epoch: Int) -> [Action] {
        guard retryEpoch == epoch else { return [] }
        retryEpoch = nil
        return plan()
    }

    /// The time of ``Action/grace(_:epoch:after:)`` has come.
    package mutating func graceEnded(_ id: TransferID, epoch: Int) -> [Action] {
        guard let transfer = transfers[id], transfer.unwantedEpoch == epoch, !transfer.isCut else { return [] }
        guard !isNearlyDone(transfer) else { return [] }
        return cut(id) + plan()
    }

    private mutating func fail() -> [Action] {
        hasFailed = true
        failures = 0
        return readers.filter { $0.value.ticket != nil }.keys.sorted().map { .wake($0) }
    }

    mutating func cut(_ id: TransferID) -> [Action] {
        guard var transfer = transfers[id], !transfer.isCut else { return [] }
        transfer.isCut = true
        transfers[id] = transfer
        return [.cut(id)]
    }

    private mutating func note(run transfer: TransferState) {
        runs.removeAll { $0.end == transfer.position }
        // One that brought nothing is no reason to ask for more next time.
        runs.append(Run(end: transfer.position, nextSize: transfer.hasLanded ? grown(transfer.size) : transfer.size))
        if runs.count > 16 { runs.removeFirst() }
    }
}
