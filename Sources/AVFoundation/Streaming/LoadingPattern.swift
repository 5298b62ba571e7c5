import Foundation

/// The pattern of `AVPlayer`'s requests, as observed from outside:
///
/// 1. The player requests the information, with a probe of two unused bytes.
/// 2. It requests all bytes from the position to the end.
/// 3. It cancels the request once enough bytes are buffered. When the buffer is nearly empty, it sends a new request,
///    which starts at the buffer's end.
/// 4. After a seek out of the buffer, it cancels the request and sends a new one, which starts at the target.
struct LoadingPattern: RequestPattern {
    private enum Information: Equatable {
        case unasked
        case asked(token: Int)
        case known(ContentInformation)
    }

    private struct Request: Equatable {
        var token: Int
        var next: Int64
        /// The end of a bounded request, or `nil` for the end of the resource.
        var end: Int64?
        /// Whether the request is cancelled. The delegate may not have been notified yet, so bytes from the delegate
        /// are still accepted.
        var isCancelled = false
        var hasFetched = false
    }

    private(set) var policy: LoadingPolicy
    private(set) var position: Int64 = 0
    private(set) var buffer = StreamBuffer()
    private(set) var hasFailed = false
    private(set) var isOpen = false
    private(set) var endOfResource: Int64?
    private var information = Information.unasked
    private var request: Request?
    private var lastToken = 0
    private var isReaderWaiting = false
    /// Whether the waiting read must return without bytes.
    private var isReadInterrupted = false
    private var hasSoughtSinceExpected = true
    private var wantsPrebuffer = false

    init(policy: LoadingPolicy = LoadingPolicy()) {
        self.policy = policy
    }

    var contentInformation: ContentInformation? {
        if case .known(let information) = information { information } else { nil }
    }
    var isReadWaiting: Bool { isReaderWaiting && isOpen }
    var isReadStuck: Bool { isReaderWaiting && isOpen && !hasSoughtSinceExpected }
    private var isSeekable: Bool { contentInformation?.isByteRangeAccessSupported ?? false }
    private var hasLiveRequest: Bool { request.map { !$0.isCancelled } ?? false }
    /// The number of buffered bytes after the position, or of all buffered bytes if the position is outside the buffer.
    private var ahead: Int64 {
        position >= buffer.start && position <= buffer.end ? buffer.end - position : buffer.count
    }

    // MARK: The player's side

    mutating func open() -> [Action] {
        var actions: [Action] = []
        isOpen = true
        position = 0
        isReadInterrupted = false
        hasSoughtSinceExpected = true
        if contentInformation == nil, !hasFailed { requestInformation(&actions) }
        return actions
    }

    mutating func opening() -> ReadResult {
        if !isOpen || hasFailed { return .failed }
        if contentInformation != nil { return .bytes(Data()) }
        isReaderWaiting = true
        return .wait
    }

    mutating func close() -> [Action] {
        isOpen = false
        request = nil
        wantsPrebuffer = false
        if case .asked = information { information = .unasked }
        return wake()
    }

    mutating func prebuffer() -> [Action] {
        guard !isOpen, !wantsPrebuffer, buffer.count == 0, !hasFailed else { return [] }
        var actions: [Action] = []
        wantsPrebuffer = true
        if contentInformation == nil { requestInformation(&actions) } else { askPrebuffer(&actions) }
        return actions
    }

    /// Sets the bit rate of the media, which determines the read-ahead.
    mutating func learned(bytesPerSecond: Double, secondsAhead preferred: Double?) {
        guard let seconds = policy.secondsAhead, bytesPerSecond.isFinite, bytesPerSecond > 0 else { return }
        let bytes = bytesPerSecond * min(max(preferred ?? seconds, 1), 3600)
        policy.cancelAbove = Int64(min(max(bytes, 512 * 1024), 8 * 1024 * 1024))
        policy.requestBelow = policy.cancelAbove / 4
    }

    mutating func seek(to offset: Int64) {
        position = max(0, offset)
        hasSoughtSinceExpected = true
    }

    mutating func read(limit: Int) -> (ReadResult, [Action]) {
        var actions: [Action] = []
        isReaderWaiting = false
        defer { isReadInterrupted = false }
        if let data = buffer.bytes(at: position, limit: limit) {
            position += Int64(data.count)
            buffer.drop(before: position - policy.keepBehind)
            topUp(&actions)
            return (.bytes(data), actions)
        }
        if !isOpen || hasFailed { return (.failed, actions) }
        if let endOfResource, position >= endOfResource { return (.endOfResource, actions) }
        if isReadInterrupted { return (.interrupted, actions) }
        request(at: position, &actions)
        isReaderWaiting = true
        return (.wait, actions)
    }

    mutating func expectSeek() {
        hasSoughtSinceExpected = false
    }

    mutating func interrupt() -> (Bool, [Action]) {
        guard isReadStuck else { return (false, []) }
        isReadInterrupted = true
        return (true, wake())
    }

    // MARK: The delegate's side

    mutating func received(_ data: Data, token: Int) -> [Action] {
        guard var current = request, current.token == token else { return [] }
        guard !current.isCancelled || ahead < 2 * policy.cancelAbove else {
            // The buffer is full, but the delegate has not been notified of the cancellation yet. These bytes, and all
            // later bytes of the request, are discarded.
            request = nil
            return []
        }
        var actions: [Action] = []
        buffer.append(data)
        current.next += Int64(data.count)
        current.hasFetched = true
        request = current
        // If ranges are not supported, a stream is read from its start again, and bytes before the position are
        // skipped.
        if !isSeekable, position > buffer.end { buffer.reset(at: buffer.end) }
        if isSeekable, ahead >= policy.cancelAbove, !current.isCancelled, isOpen {
            request?.isCancelled = true
            actions.append(.cancel(token: token))
        }
        if buffer.contains(position) { actions += wake() }
        return actions
    }

    mutating func finished(token: Int, information received: ContentInformation?) -> [Action] {
        var actions: [Action] = []
        if case .asked(token) = information, let received {
            information = .known(received)
            endOfResource = received.contentLength
            if wantsPrebuffer, !isOpen { askPrebuffer(&actions) }
            return actions + wake()
        }
        guard let current = request, current.token == token else { return [] }
        request = nil
        // If a request that was not cancelled ends early, or without a known end, the resource ends there.
        let isShort = current.end.map { current.next < $0 } ?? true
        let mayAskAgain = policy.shortFinish == .asksAgain && endOfResource != nil && current.hasFetched
        if isShort, !current.isCancelled, !mayAskAgain { endOfResource = current.next }
        return wake()
    }

    mutating func failed(token: Int) -> [Action] {
        if case .asked(token) = information {
            hasFailed = true
        } else if let current = request, current.token == token, !current.isCancelled {
            hasFailed = true
            request = nil
        } else {
            return []
        }
        return wake()
    }

    // MARK: Decisions

    private mutating func topUp(_ actions: inout [Action]) {
        guard isSeekable, !hasLiveRequest, !hasFailed, ahead < policy.requestBelow else { return }
        if let endOfResource, buffer.end >= endOfResource { return }
        // The demuxer may not have reached the end of the buffer yet, but the next bytes will be needed soon.
        ask(at: buffer.end, length: nil, &actions)
    }

    /// Ensures that bytes at `offset` will be received.
    private mutating func request(at offset: Int64, _ actions: inout [Action]) {
        if let current = request, !current.isCancelled {
            let continues = current.next == offset && current.end.map { offset < $0 } ?? true
            if continues || !isSeekable && current.next <= offset { return }
            request = nil
            let previous = Action.cancel(token: current.token)
            if !policy.requestsBeforeCancelling { actions.append(previous) }
            begin(at: offset, &actions)
            if policy.requestsBeforeCancelling { actions.append(previous) }
        } else {
            begin(at: offset, &actions)
        }
    }

    private mutating func begin(at offset: Int64, _ actions: inout [Action]) {
        let from = isSeekable ? offset : 0
        if from != buffer.end { buffer.reset(at: from) }
        ask(at: from, length: nil, &actions)
    }

    private mutating func ask(at offset: Int64, length: Int64?, _ actions: inout [Action]) {
        lastToken += 1
        let toEnd = length == nil
        let total = length ?? endOfResource.map { $0 - offset }
        request = Request(token: lastToken, next: offset, end: total.map { offset + $0 })
        actions.append(.askData(token: lastToken, offset: offset, length: total, toEnd: toEnd))
    }

    private mutating func requestInformation(_ actions: inout [Action]) {
        guard case .unasked = information else { return }
        lastToken += 1
        information = .asked(token: lastToken)
        actions.append(.requestInformation(token: lastToken))
    }

    private mutating func askPrebuffer(_ actions: inout [Action]) {
        guard isSeekable, request == nil else { return }
        ask(at: 0, length: min(policy.prebufferLength, endOfResource ?? .max), &actions)
    }

    private mutating func wake() -> [Action] {
        guard isReaderWaiting else { return [] }
        isReaderWaiting = false
        return [.wakeReader]
    }
}
