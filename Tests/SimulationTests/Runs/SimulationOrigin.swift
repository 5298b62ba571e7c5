import ByteRanges
import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization

/// An in-memory origin in virtual time. It serves patterns, fails at random times that a seed determines, and counts
/// every byte that it sends.
final class SimulationOrigin: Sendable {
    /// The bytes of one version that were sent.
    struct Sent: Sendable {
        var bytes: Int64 = 0
        var distinct = ByteRangeSet()
    }

    struct State {
        var random: SplitMix
        var faults: OriginFaults
        var isDown = false
        /// The number of the version that is currently served at each path.
        var current: [String: Int] = [:]
        var sent: [PatternBytes: Sent] = [:]
        /// The bytes that were sent recently.
        var recent: [(at: Duration, bytes: Int64)] = []
        /// The number of bytes that may have been in transit when a body was cancelled or truncated.
        var inHand: Int64 = 0
        var inFlight = 0
        var requests = 0
        var retries = RetryCheck()
    }

    let media: [String: SimulatedMedia]
    let clock: ManualClock
    let log: SimulationLog
    let state: Mutex<State>

    init(_ plan: SimulationPlan, clock: ManualClock, log: SimulationLog) {
        media = Dictionary(uniqueKeysWithValues: plan.media.map { ($0.path, $0) })
        self.clock = clock
        self.log = log
        state = Mutex(State(random: SplitMix(plan.seed &+ 0x0419), faults: plan.faults))
    }

    // MARK: - Queries

    func version(of media: SimulatedMedia) -> PatternBytes {
        media.versions[state.withLock { $0.current[media.path] ?? 0 }]
    }

    /// Returns whether a version other than the first one may have been served.
    func hasChanged(_ media: SimulatedMedia) -> Bool { state.withLock { $0.current[media.path] ?? 0 } > 0 }

    /// The total number of bytes that were sent more than once.
    var repeated: Int64 { state.withLock { $0.sent.values.reduce(0) { $0 + $1.bytes - $1.distinct.byteCount } } }

    var inHand: Int64 { state.withLock { $0.inHand } }
    var inFlight: Int { state.withLock { $0.inFlight } }
    var requests: Int { state.withLock { $0.requests } }

    /// Returns the number of bytes that were sent within the last `duration`.
    func sent(within duration: Duration) -> Int64 {
        let start = clock.now.offset - duration
        return state.withLock { $0.recent.reduce(0) { $0 + ($1.at >= start ? $1.bytes : 0) } }
    }

    // MARK: - Faults

    /// Serves the next version, if there is one.
    func change(_ media: SimulatedMedia) {
        state.withLock { $0.current[media.path] = min(($0.current[media.path] ?? 0) + 1, media.versions.count - 1) }
    }

    /// The paths of the media whose first version is no longer served.
    var changed: [String] {
        state.withLock { state in state.current.keys.filter { state.current[$0] ?? 0 > 0 }.sorted() }
    }

    /// Records that a cache has detected a change to the media. The cache then cancels its requests for the previous
    /// version.
    func recordChange(seenOf path: String) {
        let now = clock.now.offset
        state.withLock { $0.retries.recordChange(of: path, now: now) }
    }

    func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }

    /// Removes all faults.
    func clearFaults() {
        state.withLock { state in
            state.faults = OriginFaults()
            state.isDown = false
        }
    }

    // MARK: - Responding

    func open(_ request: UpstreamRequest, for life: CacheLifetime) async throws -> UpstreamResponse {
        let path = request.url.path
        if let length = Self.extremeLength(of: path) { return respond(to: request, length: length) }
        guard let media = media[path] else { return response(404, [:], request, nil) }
        log.add("origin", "\(path) asked for \(request.headerFields[.range] ?? "all")")
        let viewer = Viewer(request.headerFields)
        checkRequestTiming(request, media, viewer, life)
        let sentBefore = state.withLock { $0.sent.mapValues(\.distinct) }
        if media.latency > .zero { try await sleep(media.latency) }
        if viewer.isRefused { return response(401, [:], request, nil) }
        enum Mood { case unreachable, busy(after: Int?), serving(PatternBytes) }
        let (now, lower, name) = (clock.now.offset, Self.lower(of: request), media.name(for: viewer))
        let mood: Mood = state.withLock { state in
            state.requests += 1
            if state.isDown || state.random.chance(state.faults.unreachable) {
                state.retries.fail(name, in: life.number, at: lower, now: now)
                return .unreachable
            }
            if state.random.chance(state.faults.busy) {
                let after = state.random.pick([nil, 0, 2, 120])
                state.retries.fail(name, in: life.number, at: lower, now: now, retryAfter: .seconds(after ?? 0))
                return .busy(after: after)
            }
            return .serving(media.variant(of: media.versions[state.current[path] ?? 0], for: viewer))
        }
        switch mood {
        case .unreachable:
            log.add("origin", "\(path) can't be reached for \(lower)")
            throw UpstreamError(.unreachable, "no connection to \(path)")
        case .busy(let after):
            log.add("origin", "\(path) is busy for \(after ?? 0) s, at \(lower)")
            return response(503, after.map { [.retryAfter: "\($0)"] } ?? [:], request, nil)
        case .serving(let pattern):
            return serve(media, pattern, request, viewer, sentBefore[pattern] ?? ByteRangeSet(), life)
        }
    }

    /// Checks that the request is allowed at this time and for this viewer.
    private func checkRequestTiming(
        _ request: UpstreamRequest, _ media: SimulatedMedia, _ viewer: Viewer, _ life: CacheLifetime
    ) {
        let (now, lower) = (clock.now.offset, Self.lower(of: request))
        let early = state.withLock {
            $0.retries.ask(media.name(for: viewer), in: life.number, at: lower, now: now)
        }
        // Damaged or unstored bytes may be requested again at any time.
        let plan = life.world.plan
        if let early, !plan.damages, !plan.failsToStore {
            life.world.report(.retriedTooEarly, "\(media.path) at \(lower), \(early) too early", in: life)
        }
        // A request for the last bytes serves only to obtain the length from the headers.
        let isQuestion = request.headerFields[.range]?.hasPrefix("bytes=-") ?? false
        guard viewer.preloads, !isQuestion, life.world.isCalm, !life.world.mayPreloadsContinue(in: life) else { return }
        let waits = life.world.playbackWaits(longerThan: .milliseconds(20), in: life)
        guard !waits.isEmpty else { return }
        // A player whose bytes have just been received no longer waits, so the check is repeated shortly afterward.
        _ = life.world.task {
            await life.world.sleep(.milliseconds(5))
            guard !waits.isDisjoint(with: life.world.playbackWaits(longerThan: .zero, in: life)) else { return }
            life.world.report(.preloadedFirst, "\(media.path) at \(lower) while a player waits", in: life)
        }
    }

    /// Returns the offset of the first requested byte, or 0 for a request for the last bytes.
    private static func lower(of request: UpstreamRequest) -> Int64 {
        let text = request.headerFields[.range]?.dropFirst("bytes=".count).prefix { $0 != "-" } ?? ""
        return Int64(text) ?? 0
    }

    private func serve(
        _ media: SimulatedMedia, _ pattern: PatternBytes, _ request: UpstreamRequest, _ viewer: Viewer,
        _ sentBefore: ByteRangeSet, _ life: CacheLifetime
    ) -> UpstreamResponse {
        let tag = "\"\(pattern.seed)-\(pattern.length)\""
        var fields: HTTPFields = [.eTag: tag, .contentType: "audio/mpeg"]
        if let control = media.cacheControl { fields[.cacheControl] = control }
        if media.hasLanguages { fields[.vary] = "Accept-Language" }
        if request.headerFields[.ifNoneMatch] == tag { return response(304, fields, request, nil) }
        let isCurrent = request.headerFields[.ifRange].map { $0 == tag } ?? true
        guard media.hasRanges, isCurrent, let asked = request.headerFields[.range] else {
            if media.statesLength { fields[.contentLength] = "\(pattern.length)" }
            // If an origin keeps changing, parts from several versions are not combined. After a truncation, the whole
            // resource is requested again.
            let mayBeResent = state.withLock { $0.current[media.path] ?? 0 } > 1
            let body = Sending(
                life, media, viewer, pattern, 0..<pattern.length, sentBefore: sentBefore, mayBeResent: mayBeResent)
            return response(200, fields, request, body)
        }
        let total = media.statesLength ? "\(pattern.length)" : "*"
        let text = asked.dropFirst("bytes=".count)
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        let lower: Int64
        let upper: Int64
        if let first = bounds.first ?? nil {
            lower = first
            upper = min(pattern.length, ((bounds.last ?? nil) ?? (pattern.length - 1)) + 1)
        } else {
            lower = max(0, pattern.length - ((bounds.last ?? nil) ?? 0))
            upper = pattern.length
        }
        guard lower < upper else {
            return response(416, media.statesLength ? [.contentRange: "bytes */\(total)"] : [:], request, nil)
        }
        fields[.contentRange] = "bytes \(lower)-\(upper - 1)/\(total)"
        fields[.contentLength] = "\(upper - lower)"
        let body = Sending(life, media, viewer, pattern, lower..<upper, sentBefore: sentBefore)
        return response(206, fields, request, body)
    }

    // MARK: - Extreme lengths

    static let extremeLengths: [Int64] = [
        1 << 52, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, 1 << 56, .max - 65_536, .max,
    ]

    /// Returns the URL and the length of a resource with an extreme length. All of its bytes are “x”.
    static func extreme(_ number: Int) -> (url: URL, length: Int64) {
        (URL(string: "http://media.example/extreme\(number)")!, extremeLengths[number])  // The URL is always valid.
    }

    /// Returns whether a URL belongs to a resource with an extreme length.
    static func isExtreme(_ url: String) -> Bool { url.contains("/extreme") }

    private static func extremeLength(of path: String) -> Int64? {
        guard path.hasPrefix("/extreme"), let number = Int(path.dropFirst("/extreme".count)) else { return nil }
        return extremeLengths[number]
    }

    /// Sends at most the first 256 KiB of a range, and truncates the body after them.
    private func respond(to request: UpstreamRequest, length: Int64) -> UpstreamResponse {
        let text = request.headerFields[.range]?.dropFirst("bytes=".count) ?? "0-"
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        var (lower, upper) = (bounds.first ?? 0, bounds.last ?? nil)
        if lower == nil, let count = upper { (lower, upper) = (length - min(length, count), length - 1) }
        let first = min(lower ?? 0, length - 1)
        let last = max(first, min(upper ?? (length - 1), length - 1))
        let fields: HTTPFields = [
            .eTag: "\"extreme\"", .contentType: "video/mp4", .contentRange: "bytes \(first)-\(last)/\(length)",
        ]
        let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: Int(min(262_144, last - first + 1)))
        let body = AsyncStream { continuation in
            continuation.yield(bytes)
            continuation.finish()
        }
        return UpstreamResponse(
            head: HTTPResponse(status: .partialContent, headerFields: fields), url: request.url,
            body: UpstreamBody(body))
    }

    private func response(
        _ status: Int, _ fields: HTTPFields, _ request: UpstreamRequest, _ body: Sending?
    ) -> UpstreamResponse {
        let pieces = SentPieces(sending: body)
        return UpstreamResponse(
            head: HTTPResponse(status: .init(code: status), headerFields: fields), url: request.url,
            body: UpstreamBody(pieces))
    }

    func sleep(_ duration: Duration) async throws {
        do {
            try await clock.sleep(until: clock.now.advanced(by: duration))
        } catch {
            throw UpstreamError(.cancelled, "the request was cancelled")
        }
    }
}
