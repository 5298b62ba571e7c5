import Foundation
import HTTPTypes
import Logging
import SpoolHTTP
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

/// A long session with an origin that applies random faults to each request.
///
/// Every read gets correct bytes from one version, or an error with a message, after a limited number of requests.
final class AdversarialSession: Sendable {
    struct Summary: Sendable, CustomStringConvertible {
        var requests = 0
        var reads = 0
        var complete = 0
        var mostRequests = 0
        var mostAlike = 0
        var errors: [String: Int] = [:]

        var description: String {
            "\(requests) requests, \(reads) reads, \(complete) complete; at most \(mostRequests) requests by one read, "
                + "\(mostAlike) of them alike; errors \(errors.sorted { $0.key < $1.key })"
        }
    }

    private static let versions = [PatternBytes(seed: 1, length: 700_000), PatternBytes(seed: 2, length: 800_000)]
    private let seed: UInt64
    private let policy: FreshnessPolicy
    private let origin: OriginServer
    private let summary = Mutex(Summary())

    /// Runs reads until the origin has received `count` requests.
    static func run(seed: UInt64, requests count: Int, policy: FreshnessPolicy, changes: Bool) async throws -> Summary {
        let other = changes ? OriginContent.pattern(versions[1]) : nil
        let rule = OriginRule.drawn(seed) {
            OriginBehavior.draw(&$0, length: versions[0].length, other: other, isWire: true)
        }
        let resources = [
            "/a": OriginResource(.pattern(versions[0]), rules: [rule]), "/b": OriginResource(.pattern(versions[0])),
        ]
        return try await OriginServer.run(resources) { origin in
            let session = AdversarialSession(seed, policy, origin)
            try await session.run(count)
            return session.summary.withLock { $0 }
        }
    }

    private init(_ seed: UInt64, _ policy: FreshnessPolicy, _ origin: OriginServer) {
        self.seed = seed
        self.policy = policy
        self.origin = origin
    }

    private func run(_ count: Int) async throws {
        var random = SplitMix(seed)
        let scratch = try ScratchDirectory()
        var settings = HTTPUpstream.Configuration()
        // The timeouts are short, because the origin often stalls. If a request times out because the machine is slow,
        // it is only retried.
        settings.responseTimeout = .milliseconds(400)
        settings.idleTimeout = .milliseconds(400)
        settings.proxyEnvironment = [:]
        let upstream = AsyncHTTPClientUpstream(settings)
        var round = 0
        while origin.log.exchanges.count < count {
            round += 1
            var configuration = MediaCache.Configuration()
            configuration.freshness = policy
            configuration.logger = Logger(label: "spool.tests") { _ in SwiftLogNoOpLogHandler() }
            configuration.retry.initialDelay = .milliseconds(1)
            configuration.retry.maximumDelay = .milliseconds(5)
            configuration.retry.maximumWait = .milliseconds(500)
            configuration.readAhead.initialRequestSize = 65_536
            configuration.capacity = random.chance(3) ? .bytes(300_000) : .unlimited
            let cache = try await MediaCache.opened(
                directory: URL(fileURLWithPath: scratch.file("cache-\(round / 20)-\(random.below(3))")),
                upstream: upstream,
                configuration: configuration)
            for _ in 0..<5 where origin.log.exchanges.count < count { try await readOneOrTwo(cache, &random) }
            await cache.waitUntilUnused()
            try await cache.checkLedger()
            await cache.close()
        }
        summary.withLock { $0.requests = origin.log.exchanges.count }
    }

    private func readOneOrTwo(_ cache: MediaCache, _ random: inout SplitMix) async throws {
        let before = origin.log.exchanges.count
        let number = 1 + random.below(2)
        let ranges = (0..<number).map { _ in
            let first = Int64(random.below(700_000))
            return random.pick([.all, .from(first), .bytes(first..<first + 50_000), .suffix(first)] as [MediaRange])
        }
        let media = cache.media(for: origin.url("/a"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for range in ranges { group.addTask { try await self.read(media, range) } }
            try await group.waitForAll()
        }
        let asked = origin.log.exchanges.dropFirst(before)
        let alike =
            Dictionary(grouping: asked) { "\($0.path) \($0.headerFields[.range] ?? "")" }.values.map(\.count).max() ?? 0
        summary.withLock { summary in
            summary.mostRequests = max(summary.mostRequests, asked.count / number)
            summary.mostAlike = max(summary.mostAlike, alike / number)
        }
    }

    /// Reads `range` until its end or an error, and checks each chunk against all possible versions.
    private func read(_ media: MediaResource, _ range: MediaRange) async throws {
        var candidates = Self.versions
        var end: Int64?
        var code = "none"
        let reader = media.reader(range)
        let watchdog = Task { [seed, origin] in
            // This task reports a read that hangs, with the seed of the session. No test waits for it.
            let hangs = (try? await Task.sleep(for: .seconds(240))) != nil  // Cancelled when the read ends.
            guard hangs else { return }
            let last = origin.log.exchanges.suffix(3).map {
                "\($0.headerFields[.range] ?? "all") \($0.status ?? 0) \($0.ending)"
            }
            Issue.record("seed \(seed): \(range) never ends; the last requests: \(last)")
            reader.cancel()
        }
        defer { watchdog.cancel() }
        do {
            for try await chunk in reader {
                if let end { #expect(chunk.offset == end, "seed \(seed): a missing range") }
                candidates.removeAll { !Self.holds($0, chunk) }
                try #require(!candidates.isEmpty, "seed \(seed): wrong bytes in \(chunk.range)\(story(chunk))")
                end = chunk.range.upperBound
            }
        } catch let error as CacheError {
            #expect(error.message.count > 10, "seed \(seed): an error without a message")
            code = "\(error.code)"
        }
        if code == "none" {
            let isComplete = candidates.contains { version in
                switch range {
                case .bytes(let bytes): end == min(bytes.upperBound, version.length) || bytes.isEmpty
                default: end == version.length || end == nil
                }
            }
            #expect(isComplete, "seed \(seed): \(range) ended at \(String(describing: end)) without an error")
        }
        summary.withLock { summary in
            summary.reads += 1
            if code == "none" { summary.complete += 1 } else { summary.errors[code, default: 0] += 1 }
        }
    }

    /// Returns the version of each KiB of a chunk, and the last requests.
    private func story(_ chunk: MediaChunk) -> String {
        let pages = stride(from: 0, to: chunk.data.count, by: 1024).map { start -> String in
            let part = Array(chunk.data.dropFirst(start).prefix(1024))
            let place = chunk.offset + Int64(start)..<chunk.offset + Int64(start + part.count)
            let version = Self.versions.firstIndex { place.upperBound <= $0.length && $0.bytes(place) == part }
            return version.map { "\($0)" } ?? "?"
        }
        let last = origin.log.exchanges.suffix(16).map { exchange in
            "\(exchange.index) \(exchange.headerFields[.range] ?? "all") if \(exchange.headerFields[.ifRange] ?? "-")"
                + " \(exchange.status ?? 0) body \(exchange.body) sent \(exchange.bytesSent) \(exchange.ending)"
        }
        return ", of versions \(pages.joined()); the last requests:\n" + last.joined(separator: "\n")
    }

    private static func holds(_ version: PatternBytes, _ chunk: MediaChunk) -> Bool {
        chunk.range.upperBound <= version.length
            && chunk.data.withUnsafeBytes { version.firstMismatch(in: $0, at: chunk.offset) == nil }
    }
}

/// Short sessions, which all use the same seed.
@Suite("Sessions with a hostile origin", .timeLimit(.minutes(10)))
struct AdversarialSessionTests {
    @Test(
        "E61 to E71: whatever the origin sends, each read gets correct bytes or an error after few requests",
        arguments: [.immutable, .http, .revalidate] as [FreshnessPolicy], [true, false])
    func session(_ policy: FreshnessPolicy, changes: Bool) async throws {
        let summary = try await AdversarialSession.run(seed: 1, requests: 50, policy: policy, changes: changes)
        #expect(summary.mostRequests <= 60, "\(summary)")
        #expect(summary.mostAlike <= 20, "\(summary)")
    }
}

/// Sessions with at least `SPOOL_HOSTILE_REQUESTS` requests in total. `SPOOL_SEED` is the first seed.
@Suite(
    "Long sessions with a hostile origin",
    .enabled(if: ProcessInfo.processInfo.environment["SPOOL_HOSTILE_REQUESTS"] != nil))
struct AdversarialSessionLongTests {
    @Test("E61 to E71: thousands of requests leak neither file descriptors nor memory")
    func long() async throws {
        let environment = ProcessInfo.processInfo.environment
        let count = try #require(
            environment["SPOOL_HOSTILE_REQUESTS"].flatMap { Int($0) }, "SPOOL_HOSTILE_REQUESTS is a number")
        var seed = environment["SPOOL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1_000_000)
        var total = 0
        var first: (descriptors: Int, memory: Int)?
        while total < count {
            for policy in [.immutable, .http, .revalidate] as [FreshnessPolicy] {
                let summary = try await AdversarialSession.run(
                    seed: seed, requests: 200, policy: policy, changes: seed % 2 == 0)
                print("hostile \(seed) \(policy): \(summary)")
                #expect(summary.mostRequests <= 60, "seed \(seed): \(summary)")
                #expect(summary.mostAlike <= 20, "seed \(seed): \(summary)")
                total += summary.requests
                seed += 1
            }
            let now = (descriptors: try Self.descriptors(), memory: try Self.memory())
            let start = first ?? now
            first = start
            #expect(now.descriptors <= start.descriptors + 30)
            #expect(now.memory <= start.memory + 100_000)
            print("hostile: \(total) requests, \(now.descriptors) descriptors, \(now.memory) kB")
        }
    }

    private static func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    /// Returns the resident memory, in kB.
    private static func memory() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try #require(Int(line.split(separator: " ").dropLast().last.map { String($0) } ?? ""))
    }
}
