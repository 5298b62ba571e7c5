import Foundation
import Spool

extension Benchmark {
    /// The cost of a hit, compared with the cost of its system call, with and without other readers.
    static let scaleHits = Benchmark(
        name: "scale-hits",
        summary: "hits of 64 KiB and 1 MiB vs. pread into a new Data, by 1 and 16 tasks, with up to 3,000 readers"
    ) {
        let stored = try await StoredMedia("scale-hits", length: 128 << 20)
        let plain = try PlainFile(stored.file)
        var report = Report()
        var table = Table("hits", "Spool, µs", "peer", "peer, µs", "ratio", "goal")
        func add(_ name: String, _ pair: Pair, _ size: Int, beside peer: String, goal: Double?) {
            let times = [pair.spool, pair.peer].map { Double(size) / median($0) / 1000 }
            table.add(
                name, figure(times[0]), peer, figure(times[1]), decimal(pair.ratio), goal.map { "≥ \($0)" } ?? "")
            guard let goal else { return }
            report.goals.append(
                Goal(
                    name: "\(name), vs. \(peer)", spool: "\(figure(times[0])) µs", peer: "\(figure(times[1])) µs",
                    ratio: decimal(pair.ratio), goal: "≥ \(goal) × as fast", isMet: pair.ratio >= goal))
        }

        let rounds = 11
        for (size, name, goal) in [(64 << 10, "64 KiB", 0.5), (1 << 20, "1 MiB", 0.8)] {
            for order in Hits.Order.allCases {
                let hits = Hits(stored: stored, size: size, order: order)
                let pair = try await Pair.alternating(
                    rounds: rounds, spool: { try await hits.speed() }, peer: { try await hits.plainSpeed(plain) })
                add("\(name) \(order.rawValue)", pair, size, beside: "pread", goal: goal)
            }
        }
        let size = 64 << 10
        for order in Hits.Order.allCases {
            let hits = Hits(stored: stored, size: size, order: order)
            let pair = try await Pair.alternating(
                rounds: rounds, spool: { try await hits.speed(tasks: 16) }, peer: { try await hits.speed() })
            add("64 KiB \(order.rawValue), 16 tasks", pair, size, beside: "1 task", goal: 1.3)
        }
        let hits = Hits(stored: stored, size: size, order: .inSequence)
        let pair = try await Pair.alternating(
            rounds: rounds, spool: { try await hits.plainSpeed(plain, tasks: 16) },
            peer: { try await hits.plainSpeed(plain) })
        add("(pread itself, 16 tasks)", pair, size, beside: "1 task", goal: nil)

        // The same resource in a second cache, which has other open readers.
        let busy = try await StoredMedia("scale-busy", length: stored.length)
        for (count, resources) in [(100, 1), (3000, 1), (3000, 300)] {
            let crowd = try await Crowd(count, on: resources, of: busy)
            let place = resources == 1 ? "on it" : "on \(resources) others"
            for order in Hits.Order.allCases {
                let among = Hits(stored: busy, size: size, order: order)
                let alone = Hits(stored: stored, size: size, order: order)
                let pair = try await Pair.alternating(
                    rounds: 5, spool: { try await among.speed() }, peer: { try await alone.speed() })
                let name = "64 KiB \(order.rawValue), \(figure(Double(count))) readers open \(place)"
                add(name, pair, size, beside: "none open", goal: count == 3000 ? 0.85 : nil)
            }
            crowd.leave()
        }
        await stored.cache.close()
        await busy.cache.close()
        table.note = "128 MiB each round, in the page cache. A ratio above 1 means faster than the peer."
        report.tables = [table]
        return report
    }
}

/// Readers that have read one chunk and then wait, like the readers of paused players.
private struct Crowd {
    private let readers: [MediaReader]

    /// - Parameter resources: 1 for readers of the same resource, otherwise the number of other resources.
    init(_ count: Int, on resources: Int, of stored: StoredMedia) async throws {
        var readers: [MediaReader] = []
        for number in 0..<count {
            let isSame = resources == 1
            let media = isSame ? stored.media : stored.cache.media(for: try StoredMedia.url("\(number % resources)"))
            let start = isSame ? stored.length / Int64(count) * Int64(number) : 0
            // Only one block of each of the other resources is requested, without read-ahead.
            let reader = media.reader(.bytes(start..<(isSame ? stored.length : 65_536)), chunkSize: 4096)
            blackHole(try await reader.next())
            readers.append(reader)
        }
        self.readers = readers
    }

    func leave() { for reader in readers { reader.cancel() } }
}
