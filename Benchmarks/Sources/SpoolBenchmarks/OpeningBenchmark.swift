import Foundation
import Spool

extension Benchmark {
    /// The time to open a cache with a very large number of resources, compared with a cache with few resources.
    static let opening = Benchmark(
        name: "opening",
        summary: "ms to open a cache directory of 100,000 resources, and one of 10; lower is better"
    ) {
        let few = try await Stock(resources: 10)
        let many = try await Stock(resources: 100_000)
        let open = try await Pair.alternating(
            rounds: 31, spool: { try await many.open(andRead: false) }, peer: { try await few.open(andRead: false) })
        let play = try await Pair.alternating(
            rounds: 31, spool: { try await many.open(andRead: true) }, peer: { try await few.open(andRead: true) })
        let unclean = try await Pair.alternating(
            rounds: 5, spool: { try await many.openAfterUncleanEnd(andRead: false) },
            peer: { try await few.openAfterUncleanEnd(andRead: false) })

        var table = Table("what", "100,000 resources", "10 resources", "ratio")
        for (name, pair) in [
            ("opening", open), ("opening and reading one resource's first bytes", play),
            ("opening after a crash", unclean),
        ] {
            table.add(name, decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio))
        }
        table.note = "After a crash, each file in the folder is checked once; this is not part of the goal."
        let spool = median(open.spool)
        return Report(
            tables: [table],
            goals: [
                Goal(
                    name: "opening 100,000 resources, vs. 10", spool: "\(decimal(spool)) ms",
                    peer: "\(decimal(median(open.peer))) ms", ratio: decimal(open.ratio), goal: "≤ 2, or ≤ 20 ms",
                    isMet: open.ratio <= 2 || spool <= 20)
            ])
    }
}
