import Foundation
import Logging
import Spool
import SpoolHTTP
import Synchronization

/// One case: an empty cache, one or two reads, and a server whose responses depend on the seed.
struct FuzzCase {
    struct Totals: CustomStringConvertible {
        var cases = 0
        var reads = 0
        var ended = 0
        var bytes: Int64 = 0
        var requests = 0
        var findings = 0
        var worst = Duration.seconds(-100)

        var description: String {
            "\(cases) cases, \(requests) requests, \(reads) reads of which \(ended) to their end, \(bytes) bytes, "
                + "\(findings) findings; longest wait beyond a timeout \(worst)"
        }
    }

    let seed: UInt64
    let server: HostileServer

    /// The maximum number of requests in a case. A read requests a few positions, and retries each of them.
    private static let maximumRequestCount = 400

    func run(_ totals: inout Totals) async throws {
        var dice = Dice(seed)
        server.begin(seed)
        let upstream = Self.upstream
        var configuration = MediaCache.Configuration()
        configuration.logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        configuration.retry.maximumRetryCount = 2
        configuration.retry.initialDelay = .milliseconds(1)
        configuration.retry.maximumDelay = .milliseconds(5)
        configuration.retry.maximumWait = .milliseconds(400)
        configuration.freshness = dice.pick([.immutable, .http, .revalidate])
        configuration.readAhead.initialRequestSize = Int64(dice.pick([65_536, 131_072, 1 << 20]))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("spool-fuzz-\(UUID().uuidString)")
        let cache = MediaCache(directory: folder, upstream: upstream, configuration: configuration)
        try await cache.open()
        guard let url = URL(string: "http://127.0.0.1:\(server.port)/a\(seed)") else { return }
        let start = ContinuousClock.now
        for _ in 0..<1 + dice.below(2) {
            let media = cache.media(for: url)
            let first = Int64(dice.below(400_000))
            let range: MediaRange = dice.pick([
                .all, .all, .from(first), .bytes(first..<first + 100_000), .suffix(first),
            ])
            totals.reads += 1
            do {
                for try await chunk in media.reader(range) { totals.bytes += Int64(chunk.data.count) }
                totals.ended += 1
            } catch let error as CacheError {
                if error.message.isEmpty { throw error }
            }
        }
        await cache.close()
        try FileManager.default.removeItem(at: folder)
        totals.cases += 1
        let requests = server.requests.withLock { $0 }
        totals.requests += requests
        if requests > Self.maximumRequestCount { finding(&totals, "\(requests) requests") }
        let worst = upstream.worst.withLock { worst in
            defer { worst = (.seconds(-100), true) }
            return worst
        }
        totals.worst = max(totals.worst, worst.excess)
        if worst.excess > .seconds(1) {
            finding(&totals, "waited \(worst.excess) beyond the timeout of a \(worst.isHead ? "head" : "body")")
        }
        let time = ContinuousClock.now - start
        if time > .seconds(30) { finding(&totals, "took \(time)") }
    }

    private func finding(_ totals: inout Totals, _ text: String) {
        totals.findings += 1
        print("seed \(seed): \(text)")
    }

    /// The transport that all cases share, so that a case detects a connection that the previous case damaged.
    private static let upstream: TimedUpstream = {
        var configuration = HTTPUpstream.Configuration()
        configuration.responseTimeout = .milliseconds(250)
        configuration.idleTimeout = .milliseconds(250)
        configuration.maximumRedirects = 3
        // Three redirects need four requests, and each may take as long as the timeout. A silent origin is detected
        // with a delay of up to a quarter of the timeout.
        return TimedUpstream(
            AsyncHTTPClientUpstream(configuration), head: .milliseconds(250) * 4, chunk: .milliseconds(400))
    }()
}
