import Foundation
import Spool

extension Benchmark {
    /// The cost of a cache with a very large number of resources, compared with a small cache and with a cache that has
    /// free capacity.
    static let scaleMany = Benchmark(
        name: "scale-many",
        summary: "100,000 resources: ms to the first bytes after a crash, ms for a new resource at capacity"
    ) {
        let (many, few) = (try await Stock(resources: 100_000), try await Stock(resources: 10))
        var table = Table("with 100,000 resources", "Spool, ms", "peer", "peer, ms", "ratio", "goal")
        var report = Report()
        func add(_ name: String, _ pair: Pair, beside peer: String, goal: String = "", isMet: Bool? = nil) {
            let figures = (decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio))
            table.add(name, figures.0, peer, figures.1, figures.2, goal)
            guard let isMet else { return }
            report.goals.append(
                Goal(
                    name: "100,000 resources: \(name), vs. \(peer)", spool: "\(figures.0) ms",
                    peer: "\(figures.1) ms", ratio: figures.2, goal: goal, isMet: isMet))
        }

        let unclean = try await Pair.alternating(rounds: 7) {
            try await many.openAfterUncleanEnd(andRead: true)
        } peer: {
            try await few.openAfterUncleanEnd(andRead: true)
        }
        add(
            "opening after a crash and first byte", unclean, beside: "10 resources", goal: "≤ 20 ms",
            isMet: median(unclean.spool) <= 20)
        let clean = try await Pair.alternating(rounds: 7) {
            try await many.open(andRead: true)
        } peer: {
            try await few.open(andRead: true)
        }
        add("opening after a close and first byte", clean, beside: "10 resources")

        for (first, name) in [(true, "a new resource at capacity, first byte"), (false, "a new resource at capacity")] {
            let cache = try await many.open()
            let newcomers = Newcomers(cache: cache)
            let capacity = cache.storedByteCount
            let pair = try await Pair.alternating(rounds: 11) {
                try await cache.setCapacity(.bytes(capacity))
                return try await newcomers.time(toFirstByte: first)
            } peer: {
                try await cache.setCapacity(.unlimited)
                return try await newcomers.time(toFirstByte: first)
            }
            try await cache.setCapacity(.unlimited)
            await cache.close()
            add(
                name, pair, beside: "below capacity", goal: first ? "" : "≤ 1.3 ×",
                isMet: first ? nil : pair.ratio <= 1.3)
        }
        table.note =
            "Each resource has 256 KiB. In each round, 64 new resources are played to the end. "
            + "Files of evicted resources are sparse."
        report.tables = [table]
        return report
    }
}

/// Resources that are new to the cache and are played one after another.
private final class Newcomers {
    private let cache: MediaCache
    /// A folder name that makes the URLs unique.
    private let folder = UUID().uuidString
    private var number = 0

    init(cache: MediaCache) { self.cache = cache }

    /// Returns the mean time to the first or the last byte of 64 resources, in milliseconds.
    func time(toFirstByte: Bool) async throws -> Double {
        let count = 64
        var sum = 0.0
        for _ in 0..<count {
            number += 1
            let reader = cache.media(for: try StoredMedia.url("\(folder)/\(number)")).reader()
            let begin = ContinuousClock.now
            var first = 0.0
            while let chunk = try await reader.next() {
                if first == 0 { first = (ContinuousClock.now - begin) / .milliseconds(1) }
                blackHole(chunk)
            }
            sum += toFirstByte ? first : (ContinuousClock.now - begin) / .milliseconds(1)
        }
        return sum / Double(count)
    }
}
