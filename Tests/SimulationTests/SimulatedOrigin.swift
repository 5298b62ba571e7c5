import ByteRanges
import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization

/// An in-memory origin that serves patterns, fails at random times that a seed determines, and counts the bytes that it
/// sends.
final class SimulatedOrigin: Upstream {
    /// The faults of the origin. A value of `n` means that a fault occurs once in `n` times on average; 0 means never.
    struct Faults: Sendable {
        var unreachable = 0
        var busy = 0
        /// The average number of pieces per truncation of a body.
        var piecesPerTruncation = 0
    }

    /// The bytes that were sent for one version of one resource.
    struct Sent: Sendable {
        var bytes: Int64 = 0
        var distinct = ByteRangeSet()
    }

    private struct State {
        var random: SplitMix
        var faults: Faults
        var versions: [String: PatternBytes]
        var sent: [PatternBytes: Sent] = [:]
        var unfinished = 0
        var requests = 0
    }

    let largestPiece: Int
    private let hasRanges: Bool
    private let state: Mutex<State>

    init(_ media: [String: PatternBytes], seed: UInt64, faults: Faults, hasRanges: Bool, largestPiece: Int = 60_000) {
        self.largestPiece = largestPiece
        self.hasRanges = hasRanges
        state = Mutex(State(random: SplitMix(seed), faults: faults, versions: media))
    }

    /// Returns the bytes that were sent for a version.
    func sent(_ pattern: PatternBytes) -> Sent { state.withLock { $0.sent[pattern] ?? Sent() } }

    /// The number of bodies that were cancelled or truncated before the cache received their end. For each of them, one
    /// piece may have been sent but not used.
    var unfinished: Int { state.withLock { $0.unfinished } }

    var requests: Int { state.withLock { $0.requests } }

    /// Serves a different version from now on.
    func change(_ path: String, to pattern: PatternBytes) { state.withLock { $0.versions[path] = pattern } }

    /// Removes all faults.
    func clearFaults() { state.withLock { $0.faults = Faults() } }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        enum Fate { case unreachable, busy, served(PatternBytes), missing }
        let fate: Fate = state.withLock { state in
            state.requests += 1
            if state.random.chance(state.faults.unreachable) { return .unreachable }
            if state.random.chance(state.faults.busy) { return .busy }
            return state.versions[request.url.path].map { .served($0) } ?? .missing
        }
        switch fate {
        case .unreachable: throw UpstreamError(.unreachable, "no connection to \(request.url.path)")
        case .busy: return response(503, [:], request, nil)
        case .missing: return response(404, [:], request, nil)
        case .served(let pattern): return serve(pattern, request)
        }
    }

    private func serve(_ pattern: PatternBytes, _ request: UpstreamRequest) -> UpstreamResponse {
        let tag = "\"\(pattern.seed)-\(pattern.length)\""
        var fields: HTTPFields = [.eTag: tag, .contentType: "audio/mpeg"]
        if request.headerFields[.ifNoneMatch] == tag { return response(304, fields, request, nil) }
        let isCurrent = request.headerFields[.ifRange].map { $0 == tag } ?? true
        guard hasRanges, isCurrent, let asked = request.headerFields[.range] else {
            fields[.contentLength] = "\(pattern.length)"
            return response(200, fields, request, (pattern, 0..<pattern.length))
        }
        let bounds = asked.dropFirst(6).split(separator: "-").compactMap { Int64($0) }
        let lower = bounds.first ?? 0
        guard lower < pattern.length else {
            return response(416, [.contentRange: "bytes */\(pattern.length)"], request, nil)
        }
        let upper = min(pattern.length, bounds.count > 1 ? bounds[1] + 1 : pattern.length)
        fields[.contentRange] = "bytes \(lower)-\(upper - 1)/\(pattern.length)"
        fields[.contentLength] = "\(upper - lower)"
        return response(206, fields, request, (pattern, lower..<upper))
    }

    private func response(
        _ status: Int, _ fields: HTTPFields, _ request: UpstreamRequest, _ body: (PatternBytes, Range<Int64>)?
    ) -> UpstreamResponse {
        let (pattern, range) = body ?? (PatternBytes(length: 0), 0..<0)
        let sending = Sending(self, pattern, range)
        let pieces = AsyncThrowingStream<[UInt8], any Error>(unfolding: { try sending.next() })
        return UpstreamResponse(
            head: HTTPResponse(status: .init(code: status), headerFields: fields), url: request.url,
            body: UpstreamBody(pieces))
    }

    /// A response body that is being sent.
    private final class Sending: Sendable {
        let origin: SimulatedOrigin
        let pattern: PatternBytes
        /// The bytes that have not been sent, or `nil` if the cache has received the end of the body.
        let rest: Mutex<Range<Int64>?>

        init(_ origin: SimulatedOrigin, _ pattern: PatternBytes, _ range: Range<Int64>) {
            self.origin = origin
            self.pattern = pattern
            rest = Mutex(range)
        }

        deinit {
            if rest.withLock({ $0 != nil }) { origin.state.withLock { $0.unfinished += 1 } }
        }

        func next() throws -> [UInt8]? {
            try rest.withLock { remaining in
                guard let rest = remaining, !rest.isEmpty else {
                    remaining = nil
                    return nil
                }
                let piece = try origin.state.withLock { state in
                    if state.random.chance(state.faults.piecesPerTruncation) {
                        throw UpstreamError(.connectionLost, "the connection was lost")
                    }
                    let count = Int64(1 + state.random.below(origin.largestPiece))
                    let piece = rest.lowerBound..<min(rest.upperBound, rest.lowerBound + count)
                    var sent = state.sent[pattern] ?? Sent()
                    sent.bytes += piece.upperBound - piece.lowerBound
                    sent.distinct.insert(piece)
                    state.sent[pattern] = sent
                    return piece
                }
                remaining = piece.upperBound..<rest.upperBound
                return pattern.bytes(piece)
            }
        }
    }
}
