import ByteRanges
import Spool
import SpoolTesting
import Synchronization

/// A response body that a `SimulationOrigin` is sending.
final class Sending: Sendable {
    private let life: CacheLifetime
    private var origin: SimulationOrigin { life.world.origin }
    private let media: SimulatedMedia
    private let viewer: Viewer
    private let pattern: PatternBytes
    private let mayBeResent: Bool
    private let rest: Mutex<Range<Int64>>
    private let largest = Mutex<Int64>(0)
    /// The bytes that had been sent before the body was requested.
    private let sentBefore: ByteRangeSet
    /// The number of bytes in the last piece that other bodies have also sent since this body was requested.
    private let overtaken = Mutex<Int64>(0)
    /// Whether the receiver has received all bytes.
    private let isEnded = Mutex(false)

    /// - Parameter mayBeResent: Whether all bytes of the body may be sent once more.
    init(
        _ life: CacheLifetime, _ media: SimulatedMedia, _ viewer: Viewer, _ pattern: PatternBytes,
        _ range: Range<Int64>, sentBefore: ByteRangeSet, mayBeResent: Bool = false
    ) {
        self.sentBefore = sentBefore
        self.mayBeResent = mayBeResent
        self.life = life
        self.media = media
        self.viewer = viewer
        self.pattern = pattern
        rest = Mutex(range)
        origin.state.withLock { $0.inFlight += 1 }
    }

    deinit {
        // The receiver may not have used the last piece.
        let rest = rest.withLock { $0 }
        let inHand =
            mayBeResent
            ? rest.lowerBound : isEnded.withLock { $0 } ? overtaken.withLock { $0 } : largest.withLock { $0 }
        origin.state.withLock { state in
            state.inFlight -= 1
            state.inHand += inHand
        }
    }

    func next() async throws -> [UInt8]? {
        if media.pace > .zero { try await origin.sleep(media.pace) }
        // The connections of a killed process are closed.
        if life.isDead { throw UpstreamError(.other, "the process has been killed") }
        if Task.isCancelled { throw UpstreamError(.cancelled, "the body was cancelled") }
        let rest = rest.withLock { $0 }
        guard !rest.isEmpty else {
            isEnded.withLock { $0 = true }
            return nil
        }
        enum Fate { case cut, stalled, sent(Range<Int64>) }
        let now = origin.clock.now.offset
        let fate: Fate = origin.state.withLock { state in
            if state.isDown || state.random.chance(state.faults.piecesPerTruncation) { return .cut }
            if state.random.chance(state.faults.piecesPerStall) { return .stalled }
            var upper = min(rest.upperBound, rest.lowerBound + Int64(1 + state.random.below(media.largestPiece)))
            if let place = media.truncationOffset, rest.contains(place) {
                if place == rest.lowerBound { return .cut }
                upper = min(upper, place)
            }
            let piece = rest.lowerBound..<upper
            var sent = state.sent[pattern] ?? SimulationOrigin.Sent()
            overtaken.withLock {
                $0 = sent.distinct.intersection(piece).byteCount - sentBefore.intersection(piece).byteCount
            }
            sent.bytes += piece.upperBound - piece.lowerBound
            sent.distinct.insert(piece)
            state.sent[pattern] = sent
            state.retries.succeed(media.name(for: viewer), in: life.number, at: piece.lowerBound)
            state.recent.append((now, piece.upperBound - piece.lowerBound))
            if state.recent.count > 4096 { state.recent.removeFirst(2048) }
            return .sent(piece)
        }
        switch fate {
        case .cut:
            origin.log.add("origin", "\(media.path) cut at \(rest.lowerBound)")
            origin.state.withLock {
                $0.retries.fail(media.name(for: viewer), in: life.number, at: rest.lowerBound, now: now)
            }
            throw UpstreamError(.connectionLost, "the connection for \(media.path) was lost")
        case .stalled:
            try await origin.sleep(.seconds(15))
            throw UpstreamError(.timedOut, "\(media.path) sent nothing for 15 s")
        case .sent(let piece):
            let name = media.name(for: viewer)
            let idle = origin.state.withLock { $0.retries.idleTimeout(of: name, now: now) }
            // A transfer without readers is cancelled after 50 ms, unless its remaining bytes fit into the socket
            // buffers.
            if idle > .milliseconds(100), rest.upperBound - rest.lowerBound > 256 << 10 {
                life.world.report(
                    .unneededTransfer, "\(media.path) sends \(piece), which no reader has needed for \(idle)", in: life)
            }
            self.rest.withLock { $0 = piece.upperBound..<$0.upperBound }
            largest.withLock { $0 = max($0, piece.upperBound - piece.lowerBound) }
            origin.log.add("origin", "\(media.path) sends \(piece)")
            return pattern.bytes(piece)
        }
    }
}

/// The pieces of a body from a ``SimulationOrigin``. The sequence is empty if there is no body.
struct SentPieces: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// An iterator that cancels the body when it is released.
    struct Iterator: AsyncIteratorProtocol {
        let sending: Sending?

        mutating func next() async throws -> [UInt8]? { try await sending?.next() }
    }

    let sending: Sending?

    func makeAsyncIterator() -> Iterator { Iterator(sending: sending) }
}
