import ByteRanges
import Spool
import SpoolTesting
import Synchronization

/// One body on its way from a `PlayOrigin`.
final class Sending: Sendable {
    private let life: PlayLife
    private var origin: PlayOrigin { life.world.origin }
    private let media: SimulatedMedia
    private let pattern: PatternBytes
    private let rest: Mutex<Range<Int64>>
    private let largest = Mutex<Int64>(0)

    init(_ life: PlayLife, _ media: SimulatedMedia, _ pattern: PatternBytes, _ range: Range<Int64>) {
        self.life = life
        self.media = media
        self.pattern = pattern
        rest = Mutex(range)
        origin.state.withLock { $0.inFlight += 1 }
    }

    deinit {
        // The piece that was handed out last may have come to nothing.
        let inHand = rest.withLock { $0.isEmpty } ? 0 : largest.withLock { $0 }
        origin.state.withLock { state in
            state.inFlight -= 1
            state.inHand += inHand
        }
    }

    func next() async throws -> [UInt8]? {
        if media.pace > .zero { try await origin.sleep(media.pace) }
        // The connections of a killed process are closed.
        if life.isDead { throw UpstreamError(.failed, "the process has been killed") }
        if Task.isCancelled { throw UpstreamError(.cancelled, "the body was given up") }
        let rest = rest.withLock { $0 }
        guard !rest.isEmpty else { return nil }
        enum Fate { case cut, stalled, sent(Range<Int64>) }
        let now = origin.clock.now.offset
        let fate: Fate = origin.state.withLock { state in
            if state.isDown || state.random.chance(state.faults.cut) { return .cut }
            if state.random.chance(state.faults.stall) { return .stalled }
            var upper = min(rest.upperBound, rest.lowerBound + Int64(1 + state.random.below(media.largestPiece)))
            if let place = media.failingPlace, rest.contains(place) {
                if place == rest.lowerBound { return .cut }
                upper = min(upper, place)
            }
            let piece = rest.lowerBound..<upper
            var sent = state.sent[pattern] ?? PlayOrigin.Sent()
            sent.bytes += piece.upperBound - piece.lowerBound
            sent.distinct.insert(piece)
            state.sent[pattern] = sent
            state.recent.append((now, piece.upperBound - piece.lowerBound))
            if state.recent.count > 4096 { state.recent.removeFirst(2048) }
            return .sent(piece)
        }
        switch fate {
        case .cut:
            origin.log.add("origin", "\(media.path) cut at \(rest.lowerBound)")
            throw UpstreamError(.connectionLost, "the line to \(media.path) was cut")
        case .stalled:
            try await origin.sleep(.seconds(15))
            throw UpstreamError(.timedOut, "\(media.path) sent nothing for 15 s")
        case .sent(let piece):
            self.rest.withLock { $0 = piece.upperBound..<$0.upperBound }
            largest.withLock { $0 = max($0, piece.upperBound - piece.lowerBound) }
            origin.log.add("origin", "\(media.path) sends \(piece)")
            return pattern.bytes(piece)
        }
    }
}

/// A body of a `PlayOrigin` as a sequence, or an empty one.
struct SentPieces: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// Gives the body up when it is released.
    struct Iterator: AsyncIteratorProtocol {
        let sending: Sending?

        mutating func next() async throws -> [UInt8]? { try await sending?.next() }
    }

    let sending: Sending?

    func makeAsyncIterator() -> Iterator { Iterator(sending: sending) }
}
