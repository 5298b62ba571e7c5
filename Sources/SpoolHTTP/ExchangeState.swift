import Foundation
import HTTPTypes
import Spool

/// The state machine of one request and its response. It decides which task to resume, when the transport pauses, and
/// when a body has stalled.
///
/// This type neither performs I/O nor resumes tasks, but it stores continuations and returns them. ``Exchange`` locks
/// it, and acts after unlocking. The states are waiting for headers → body → over. The transport may end an exchange in
/// any state, and the consumer may leave in any state. Later events are ignored.
struct ExchangeState<Chunk: GatheredBytes> {
    typealias HeadWaiter = CheckedContinuation<HTTPResponse, any Error>
    typealias ChunkWaiter = CheckedContinuation<Chunk?, any Error>

    /// The number of buffered bytes, or of buffered chunks, at which the transport pauses. Small chunks are joined.
    private static var highWater: (bytes: Int, chunks: Int) { (1 << 20, 64) }
    /// The maximum number of bytes to receive after the consumer's task is cancelled. A fast origin could otherwise
    /// send many megabytes that are not needed.
    private static var drainLimit: Int { 1 << 20 }

    private var head: HTTPResponse?
    private var headWaiter: HeadWaiter?
    private var chunkWaiter: ChunkWaiter?
    private var chunks: [(chunk: Chunk, count: Int)] = []
    private var buffered = 0
    private var isPaused = false
    /// The result with which the transport has ended. Chunks that were received earlier are still delivered.
    private var outcome: Result<Void, UpstreamError>?
    private var isClosed = false
    private var meter: StallMeter
    /// The number of bytes that may still be received after ``leave()``, or `nil` before.
    private var drainLeft: Int?
    private var hasReceived = false

    init(_ configuration: HTTPUpstream.Configuration) { meter = StallMeter(configuration) }

    /// The number of received bytes that the consumer has not taken.
    var bufferedBytes: Int { buffered }

    /// Whether the consumer is waiting for a chunk, which may still be received.
    var isAwaited: Bool { !isOver && chunkWaiter != nil }

    /// Whether the transport has ended or the consumer has left.
    var isOver: Bool { outcome != nil || isClosed }

    // MARK: From the transport

    mutating func receiveHead(_ head: HTTPResponse) -> HeadWaiter? {
        guard !isOver, self.head == nil else { return nil }
        self.head = head
        meter.hasUnknownLength = head.headerFields[.contentLength] == nil
        hasReceived = true
        defer { headWaiter = nil }
        return headWaiter
    }

    /// Receives a chunk. Returns the waiting task to resume with it, and whether the transport may continue
    /// immediately.
    ///
    /// If the consumer waits, it receives the chunk immediately. Otherwise chunks are joined into pieces of up to
    /// ``GatheredBytes/gatherLimit`` bytes.
    mutating func receive(_ chunk: Chunk, count: Int) -> (waiter: ChunkWaiter?, shouldContinue: Bool) {
        guard !isOver else { return (nil, true) }
        meter.receive(count)
        hasReceived = true
        drainLeft? -= count
        if let waiter = chunkWaiter {
            chunkWaiter = nil
            return (waiter, !isDrained)
        }
        if let last = chunks.indices.last, chunks[last].count + count <= Chunk.gatherLimit {
            chunks[last].chunk.append(chunk)
            chunks[last].count += count
        } else {
            chunks.append((chunk, count))
        }
        buffered += count
        isPaused = isPaused || buffered >= Self.highWater.bytes || chunks.count >= Self.highWater.chunks
        return (nil, !isPaused && !isDrained)
    }

    /// Whether all bytes that may be received after ``leave()`` have been received.
    private var isDrained: Bool { drainLeft.map { $0 <= 0 } ?? false }

    mutating func finish(_ outcome: Result<Void, UpstreamError>) -> (HeadWaiter?, ChunkWaiter?) {
        guard !isOver else { return (nil, nil) }
        self.outcome = outcome
        defer { (headWaiter, chunkWaiter) = (nil, nil) }
        return (headWaiter, chunkWaiter)
    }

    // MARK: From the consumer

    /// Returns the headers or the failure; otherwise stores `waiter` and returns `nil`.
    mutating func awaitHead(_ waiter: HeadWaiter, cancelled: UpstreamError) -> Result<HTTPResponse, UpstreamError>? {
        if let head { return .success(head) }
        if isClosed { return .failure(cancelled) }
        switch outcome {
        case .failure(let error): return .failure(error)
        case .success:
            return .failure(UpstreamError(.connectionLost, "the response ended before its headers were complete"))
        case nil:
            headWaiter = waiter
            return nil
        }
    }

    /// The result of ``take(cancelled:)``.
    enum Taken {
        /// A chunk, the end (`nil`) or the failure, and whether a paused transport resumes.
        case now(Result<Chunk?, UpstreamError>, resumes: Bool)
        /// Neither a chunk nor an outcome is available yet.
        case nothing
    }

    /// Takes the next chunk if there is one.
    mutating func take(cancelled: UpstreamError) -> Taken {
        if isClosed { return .now(.failure(cancelled), resumes: false) }
        if !chunks.isEmpty {
            let (chunk, count) = chunks.removeFirst()
            buffered -= count
            let resumes =
                isPaused && buffered <= Self.highWater.bytes / 2 && chunks.count <= Self.highWater.chunks / 2
            if resumes { isPaused = false }
            return .now(.success(chunk), resumes: resumes && !isDrained)
        }
        switch outcome {
        case .success: return .now(.success(nil), resumes: false)
        case .failure(let error): return .now(.failure(error), resumes: false)
        case nil: return .nothing
        }
    }

    /// Does the same as ``take(cancelled:)``, but stores `waiter` if there is nothing to take yet.
    mutating func awaitChunk(_ waiter: ChunkWaiter, cancelled: UpstreamError) -> Taken {
        let taken = take(cancelled: cancelled)
        if case .nothing = taken {
            chunkWaiter = waiter
            meter.wait()
        }
        return taken
    }

    /// Handles a consumer that has left: discards buffered bytes. Returns whether to stop the transport, and the
    /// waiting tasks.
    mutating func close() -> (stops: Bool, HeadWaiter?, ChunkWaiter?) {
        guard !isClosed else { return (false, nil, nil) }
        let stops = outcome == nil
        isClosed = true
        chunks = []
        buffered = 0
        defer { (headWaiter, chunkWaiter) = (nil, nil) }
        return (stops, headWaiter, chunkWaiter)
    }

    // MARK: After cancellation

    /// Handles the cancellation of the consumer's task. Bytes that were already sent are still delivered. Returns
    /// `false` if the exchange is over, or after the first call.
    mutating func leave() -> Bool {
        guard !isOver, drainLeft == nil else { return false }
        drainLeft = Self.drainLimit
        hasReceived = false
        return true
    }

    /// Returns whether bytes have been received since ``leave()`` or the previous call, and more may be received.
    mutating func stillReceives() -> Bool {
        defer { hasReceived = false }
        return !isOver && hasReceived && !isDrained
    }

    // MARK: From the clock

    /// Handles a tick, which occurs after each quarter of the idle timeout. Returns the kind of stall, or `nil` if the
    /// body has not stalled.
    mutating func tick() -> StallMeter.Stall? {
        meter.tick(isWaited: isAwaited)
    }
}

/// Received bytes to which later bytes can be appended, so that many small pieces are handled as one.
protocol GatheredBytes: ContiguousBytes, Sendable {
    /// Appends the bytes that follow.
    mutating func append(_ other: Self)
}

extension GatheredBytes {
    /// The maximum size of a joined piece, in bytes. A larger piece stays as it was received.
    static var gatherLimit: Int { 16 << 10 }
}

extension Data: GatheredBytes {}

/// A check, at regular ticks, of whether a body has stalled. A body has stalled if too few or no bytes are received
/// while a reader is waiting.
///
/// A body that was never faster does not count as too slow, because another request would probably not be faster
/// either. Below an eighth of the limit, any body is too slow. This type does not read a clock. A tick is a quarter of
/// the idle timeout. Time without a waiting reader does not count.
struct StallMeter {
    /// The kind of stall.
    enum Stall { case isSilent, isSlow }

    /// Whether the length of the body is unknown, as for a live stream. Such a body is never considered slow.
    var hasUnknownLength = false
    private let slowTicks: Int
    private let leastBytes: Double
    private var silentTicks = 0
    private var window = Period()
    /// The period before ``window``.
    private var earlier = Period()

    private struct Period {
        var ticks = 0
        var bytes = 0.0
        var bytesPerTick: Double { bytes / Double(max(ticks, 1)) }
    }

    init(_ configuration: HTTPUpstream.Configuration) {
        let tick = max(configuration.idleTimeout / 4, .milliseconds(1))
        let ticks = max(configuration.lowSpeedTime, .zero) / tick
        slowTicks = max(1, Int(min(ticks.rounded(.up), 1e9)))
        leastBytes = Double(max(configuration.lowSpeedLimit, 0)) * (tick * slowTicks / .seconds(1))
    }

    /// Records that a reader has started to wait.
    mutating func wait() { silentTicks = 0 }

    mutating func receive(_ count: Int) {
        silentTicks = 0
        window.bytes += Double(count)
    }

    /// Handles a tick. More than four consecutive ticks without a byte mean silence.
    mutating func tick(isWaited: Bool) -> Stall? {
        guard isWaited else {
            silentTicks = 0
            // Without a waiting reader, the transport may pause, so only ticks with bytes count.
            if window.bytes > 0 { window.ticks += 1 }
            endWindow()
            return nil
        }
        silentTicks += 1
        if silentTicks > 4 { return .isSilent }
        window.ticks += 1
        guard window.ticks >= slowTicks else { return nil }
        let isSlower = window.bytesPerTick < earlier.bytesPerTick / 2 || window.bytes < leastBytes / 8
        defer { endWindow() }
        return window.bytes < leastBytes && isSlower && !hasUnknownLength ? .isSlow : nil
    }

    private mutating func endWindow() {
        earlier.ticks += window.ticks
        earlier.bytes += window.bytes
        window = Period()
    }
}
