import Foundation

/// A pattern of requests that is difficult to serve. It combines behaviors that Apple's documentation allows and that
/// video players exhibit.
///
/// Several requests are open at different offsets. Bounded requests cover the current read, the next read and the tail.
/// One request starts further ahead and extends to the end. After each seek, the information is requested again. A
/// request that is no longer useful is cancelled several megabytes later, or never. If byte ranges are not supported,
/// there is only one request.
struct ConcurrentPattern: RequestPattern {
    /// One request and its received bytes.
    private struct Stretch {
        let token: Int
        /// The end of the request, or `nil` if the request extends to the end of a resource of unknown length.
        let end: Int64?
        let isTail: Bool
        let isToEnd: Bool
        var buffer = StreamBuffer()
        var isOpen = true
        var hasFetched = false
        /// The total number of bytes received by all requests after which this request is cancelled.
        var cancelAt: Int64?

        /// Returns whether the request has received the byte at the offset, or will receive it within the next `reach`
        /// bytes.
        func receives(_ offset: Int64, within reach: Int64) -> Bool {
            if buffer.contains(offset) { return true }
            guard isOpen, offset >= buffer.end, offset - buffer.end <= reach else { return false }
            return end.map { offset < $0 } ?? true
        }
    }

    let policy: LoadingPolicy
    private(set) var contentInformation: ContentInformation?
    private(set) var endOfResource: Int64?
    private(set) var hasFailed = false
    private(set) var position: Int64 = 0
    private var isOpen = false
    private var stretches: [Stretch] = []
    private var informationTokens: Set<Int> = []
    private var lastToken = 0
    private var receivedInAll: Int64 = 0
    private var hasRequestedNearby = false
    private var wantsPrebuffer = false
    /// Whether the player waits forever, because the delegate has delivered the two bytes of the probe.
    private var isStalledAfterProbe = false
    private var isReaderWaiting = false
    private var isReadInterrupted = false
    private var hasSoughtSinceExpected = true

    init(policy: LoadingPolicy = .hostile) { self.policy = policy }

    var isReadWaiting: Bool { isReaderWaiting && isOpen }
    var isReadStuck: Bool { isReaderWaiting && isOpen && !hasSoughtSinceExpected }
    private var isSeekable: Bool { contentInformation?.isByteRangeAccessSupported ?? false }

    // MARK: The player's side

    mutating func open() -> [Action] {
        isOpen = true
        position = 0
        isReadInterrupted = false
        hasSoughtSinceExpected = true
        return contentInformation == nil && informationTokens.isEmpty && !hasFailed ? [requestInformation()] : []
    }

    mutating func opening() -> ReadResult {
        if !isOpen || hasFailed { return .failed }
        if contentInformation != nil, !isStalledAfterProbe { return .bytes(Data()) }
        isReaderWaiting = true
        return .wait
    }

    mutating func close() -> [Action] {
        isOpen = false
        wantsPrebuffer = false
        informationTokens = []
        for index in stretches.indices { stretches[index].isOpen = false }
        return wake()
    }

    mutating func prebuffer() -> [Action] {
        guard !isOpen, !wantsPrebuffer, stretches.isEmpty, !hasFailed else { return [] }
        wantsPrebuffer = true
        if contentInformation == nil { return informationTokens.isEmpty ? [requestInformation()] : [] }
        return isSeekable ? [ask(0..<min(policy.prebufferLength, endOfResource ?? .max))] : []
    }

    mutating func learned(bytesPerSecond: Double, secondsAhead: Double?) {}

    mutating func seek(to offset: Int64) {
        position = max(0, offset)
        hasSoughtSinceExpected = true
    }

    mutating func expectSeek() { hasSoughtSinceExpected = false }

    mutating func interrupt() -> (Bool, [Action]) {
        guard isReadStuck else { return (false, []) }
        isReadInterrupted = true
        return (true, wake())
    }

    mutating func read(limit: Int) -> (ReadResult, [Action]) {
        isReaderWaiting = false
        defer { isReadInterrupted = false }
        if !isStalledAfterProbe, let index = stretches.lastIndex(where: { $0.buffer.contains(position) }),
            let data = stretches[index].buffer.bytes(at: position, limit: limit)
        {
            position += Int64(data.count)
            releaseBytes()
            return (.bytes(data), isOpen && !hasFailed ? readAhead() : [])
        }
        if !isOpen || hasFailed { return (.failed, []) }
        if let endOfResource, position >= endOfResource { return (.endOfResource, []) }
        if isReadInterrupted { return (.interrupted, []) }
        isReaderWaiting = true
        if stretches.contains(where: { $0.receives(position, within: policy.cancelAbove) }) { return (.wait, []) }
        return (.wait, requestNearby())
    }

    // MARK: The delegate's side

    mutating func received(_ data: Data, token: Int) -> [Action] {
        if informationTokens.contains(token) {
            if policy.hangsAfterProbe { isStalledAfterProbe = true }
            return []
        }
        guard let index = stretches.firstIndex(where: { $0.token == token && $0.isOpen }) else { return [] }
        receivedInAll += Int64(data.count)
        stretches[index].buffer.append(data)
        stretches[index].hasFetched = true
        if stretches[index].isToEnd, isSeekable, stretches[index].cancelAt == nil,
            stretches[index].buffer.end - max(position, stretches[index].buffer.start) > policy.cancelAbove
        {
            stretches[index].cancelAt = receivedInAll + policy.cancelsLateBy
        }
        let isAwaited = stretches[index].buffer.contains(position)
        return lateCancels() + (isAwaited ? wake() : [])
    }

    mutating func finished(token: Int, information received: ContentInformation?) -> [Action] {
        if informationTokens.remove(token) != nil {
            guard let received else { return [] }
            contentInformation = received
            endOfResource = received.contentLength ?? endOfResource
            let isWanted = wantsPrebuffer && !isOpen && isSeekable && stretches.isEmpty
            return (isWanted ? [ask(0..<min(policy.prebufferLength, endOfResource ?? .max))] : []) + wake()
        }
        guard let index = stretches.firstIndex(where: { $0.token == token && $0.isOpen }) else { return [] }
        stretches[index].isOpen = false
        let stretch = stretches[index]
        let isShort = stretch.end.map { stretch.buffer.end < $0 } ?? true
        guard isShort, stretch.cancelAt == nil else { return wake() }
        // If a repeated request ends without bytes, the resource has ended.
        if policy.shortFinish == .endsResource || !stretch.hasFetched || endOfResource == nil {
            endOfResource = stretch.buffer.end
        }
        return wake()
    }

    mutating func failed(token: Int) -> [Action] {
        if informationTokens.remove(token) == nil {
            guard let index = stretches.firstIndex(where: { $0.token == token && $0.isOpen }) else { return [] }
            stretches[index].isOpen = false
            // The failure of a useless request has no effect.
            guard stretches[index].cancelAt == nil else { return [] }
        }
        hasFailed = true
        return wake()
    }

    // MARK: Decisions

    /// Sends several requests, for the current and later reads.
    private mutating func requestNearby() -> [Action] {
        guard isSeekable else { return stretches.contains(where: \.isOpen) ? [] : [ask(0..<Int64.max)] }
        for index in stretches.indices where stretches[index].isOpen && stretches[index].cancelAt == nil {
            stretches[index].cancelAt = receivedInAll + policy.cancelsLateBy
        }
        guard let length = endOfResource else { return [ask(position..<Int64.max)] }
        let step = policy.readLength
        let near = min(length, position + step)
        var actions = [ask(position..<near)]
        if near < length { actions.append(ask(near..<min(length, near + step))) }
        if !hasRequestedNearby, length > 4 * step { actions.append(ask(length - step..<length, isTail: true)) }
        if near + step < length { actions.append(ask(near + step..<length, isToEnd: true)) }
        if hasRequestedNearby { actions.append(requestInformation()) }
        hasRequestedNearby = true
        return actions
    }

    /// Requests the next range if it starts only slightly ahead of the position.
    private mutating func readAhead() -> [Action] {
        guard isSeekable, let length = endOfResource else { return [] }
        var next = position
        while let stretch = stretches.last(where: { $0.receives(next, within: .max) }) {
            let end = stretch.isOpen ? stretch.end ?? length : stretch.buffer.end
            guard end > next else { break }
            next = end
        }
        guard next < length, next < position + 2 * policy.readLength else { return [] }
        return [ask(next..<min(length, next + policy.readLength))]
    }

    private mutating func lateCancels() -> [Action] {
        var actions: [Action] = []
        for index in stretches.indices where stretches[index].isOpen {
            guard let limit = stretches[index].cancelAt, receivedInAll >= limit else { continue }
            stretches[index].isOpen = false
            actions.append(.cancel(token: stretches[index].token))
        }
        return actions
    }

    /// Releases bytes far behind the position, and removes finished requests for distant ranges.
    private mutating func releaseBytes() {
        let behind = position - policy.keepBehind
        for index in stretches.indices where !stretches[index].isTail && stretches[index].buffer.start <= position {
            stretches[index].buffer.drop(before: behind)
        }
        let far = position + 4 * policy.cancelAbove + policy.cancelsLateBy
        stretches.removeAll { stretch in
            !stretch.isOpen && !stretch.isTail && (stretch.buffer.end <= behind || stretch.buffer.start > far)
        }
    }

    private mutating func ask(_ range: Range<Int64>, isTail: Bool = false, isToEnd: Bool = false) -> Action {
        lastToken += 1
        let length = range.upperBound == .max ? nil : Int64(range.count)
        var stretch = Stretch(
            token: lastToken, end: length == nil ? endOfResource : range.upperBound, isTail: isTail,
            isToEnd: isToEnd || length == nil)
        stretch.buffer.reset(at: range.lowerBound)
        stretches.append(stretch)
        return .askData(
            token: lastToken, offset: range.lowerBound, length: length ?? endOfResource,
            toEnd: isToEnd || length == nil)
    }

    private mutating func requestInformation() -> Action {
        lastToken += 1
        informationTokens.insert(lastToken)
        return .requestInformation(token: lastToken)
    }

    private mutating func wake() -> [Action] {
        guard isReaderWaiting else { return [] }
        isReaderWaiting = false
        return [.wakeReader]
    }
}
