import HTTPTypes
import Spool

/// Decides for one request and its response: who is woken with what, when the transport pauses, and what counts as stalled.
///
/// Pure but for the continuations that it keeps and hands back: ``Exchange`` locks it, asks, and acts after unlocking.
/// States: waiting for the head → body → over. The transport may end an exchange in any state, the consumer may leave in
/// any state; what comes after that is ignored.
struct ExchangeState<Chunk: GatheredBytes> {
    typealias HeadWaiter = CheckedContinuation<HTTPResponse, any Error>
    typealias ChunkWaiter = CheckedContinuation<Chunk?, any Error>

    /// The number of waiting bytes, or of waiting chunks, at which the transport pauses. Small chunks are joined.
    static var highWater: (bytes: Int, chunks: Int) { (1 << 20, 64) }

    private var head: HTTPResponse?
    private var headWaiter: HeadWaiter?
    private var chunkWaiter: ChunkWaiter?
    private var chunks: [(chunk: Chunk, count: Int)] = []
    private var buffered = 0
    private var isPaused = false
    /// How the transport ended; the chunks that came before it are still handed out.
    private var outcome: Result<Void, UpstreamError>?
    private var isClosed = false
    private var meter: StallMeter
    private var isDraining = false
    private var hasReceived = false

    init(_ configuration: HTTPUpstream.Configuration) { meter = StallMeter(configuration) }

    /// Bytes that have come and that nobody has taken.
    var bufferedBytes: Int { buffered }

    /// Whether the transport has ended or the consumer has left.
    var isOver: Bool { outcome != nil || isClosed }

    // MARK: From the transport

    mutating func receiveHead(_ head: HTTPResponse) -> HeadWaiter? {
        guard !isOver, self.head == nil else { return nil }
        self.head = head
        hasReceived = true
        defer { headWaiter = nil }
        return headWaiter
    }

    /// Takes in a chunk: the waiter to wake with it, and whether the transport may go on at once.
    ///
    /// If the consumer waits, it receives the chunk at once. Otherwise chunks are joined into pieces of up to
    /// ``GatheredBytes/gatherLimit`` bytes.
    mutating func receive(_ chunk: Chunk, count: Int) -> (waiter: ChunkWaiter?, goesOn: Bool) {
        guard !isOver else { return (nil, true) }
        meter.receive(count)
        hasReceived = true
        if let waiter = chunkWaiter {
            chunkWaiter = nil
            return (waiter, true)
        }
        if let last = chunks.indices.last, chunks[last].count + count <= Chunk.gatherLimit {
            chunks[last].chunk.append(chunk)
            chunks[last].count += count
        } else {
            chunks.append((chunk, count))
        }
        buffered += count
        isPaused = isPaused || buffered >= Self.highWater.bytes || chunks.count >= Self.highWater.chunks
        return (nil, !isPaused)
    }

    mutating func finish(_ outcome: Result<Void, UpstreamError>) -> (HeadWaiter?, ChunkWaiter?) {
        guard !isOver else { return (nil, nil) }
        self.outcome = outcome
        defer { (headWaiter, chunkWaiter) = (nil, nil) }
        return (headWaiter, chunkWaiter)
    }

    // MARK: From the consumer

    /// The head or the failure if there is one; else keeps `waiter` and returns nil.
    mutating func awaitHead(_ waiter: HeadWaiter, cancelled: UpstreamError) -> Result<HTTPResponse, UpstreamError>? {
        if let head { return .success(head) }
        if isClosed { return .failure(cancelled) }
        switch outcome {
        case .failure(let error): return .failure(error)
        case .success: return .failure(UpstreamError(.connectionLost, "the response ended before its head"))
        case nil:
            headWaiter = waiter
            return nil
        }
    }

    /// The result of ``take(cancelled:)``.
    enum Taken {
        /// A chunk, the end (nil) or the failure; and whether a paused transport is to go on.
        case now(Result<Chunk?, UpstreamError>, resumes: Bool)
        /// Nothing yet.
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
            return .now(.success(chunk), resumes: resumes)
        }
        switch outcome {
        case .success: return .now(.success(nil), resumes: false)
        case .failure(let error): return .now(.failure(error), resumes: false)
        case nil: return .nothing
        }
    }

    /// As ``take(cancelled:)``, and keeps `waiter` if there is nothing.
    mutating func awaitChunk(_ waiter: ChunkWaiter, cancelled: UpstreamError) -> Taken {
        let taken = take(cancelled: cancelled)
        if case .nothing = taken {
            chunkWaiter = waiter
            meter.wait()
        }
        return taken
    }

    /// The consumer has left: drops what is buffered. Returns whether the transport must be stopped, and who still waits.
    mutating func close() -> (stops: Bool, HeadWaiter?, ChunkWaiter?) {
        guard !isClosed else { return (false, nil, nil) }
        let stops = outcome == nil
        isClosed = true
        chunks = []
        buffered = 0
        defer { (headWaiter, chunkWaiter) = (nil, nil) }
        return (stops, headWaiter, chunkWaiter)
    }

    // MARK: After a cancel

    /// The consumer's task has been cancelled: what has been sent already is still handed out. Returns whether this is
    /// news.
    mutating func leave() -> Bool {
        guard !isOver, !isDraining else { return false }
        isDraining = true
        hasReceived = false
        return true
    }

    /// Whether something has come since ``leave()`` or the last call.
    mutating func stillReceives() -> Bool {
        defer { hasReceived = false }
        return !isOver && hasReceived
    }

    // MARK: From the clock

    /// A quarter of the idle timeout has passed. Returns how the body has stalled, if it has.
    mutating func tick() -> StallMeter.Stall? {
        meter.tick(isWaited: !isOver && chunkWaiter != nil)
    }
}
