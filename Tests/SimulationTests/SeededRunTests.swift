import Foundation
import Synchronization
import Testing

/// Simulated runs (see ``SimulatedRun``).
///
/// `SPOOL_SEED=n` runs one seed and prints its log. `SPOOL_PLAYS=n` and `SPOOL_FIRST_SEED=n` set the number of runs and
/// the first seed.
@Suite("Simulated runs", .serialized)
struct SeededRunTests {
    /// The kinds of known faults that are not fixed yet.
    private static let known: Set<Finding.Kind> = []

    private let environment = ProcessInfo.processInfo.environment

    @Test("500 simulated runs find no faults", .timeLimit(.minutes(30)))
    func gate() async {
        if let seed = environment["SPOOL_SEED"].flatMap(UInt64.init) { return await replay(seed) }
        let first = environment["SPOOL_FIRST_SEED"].flatMap(UInt64.init) ?? 0
        let count = environment["SPOOL_PLAYS"].flatMap(UInt64.init) ?? 500
        let start = ContinuousClock.now
        let summary = SimulationSummary(await SimulationRunner.run(first..<first + count))
        print("\(summary)\n\(ContinuousClock.now - start)")
        for kind in Finding.Kind.allCases {
            let seeds = summary.seeds(of: kind)
            guard let seed = seeds.first else { continue }
            let text = "\(kind) in \(seeds.count) plays; SPOOL_SEED=\(seed) shows it"
            if Self.known.contains(kind) {
                withKnownIssue("known of this engine") { Issue.record("\(text)") }
            } else {
                Issue.record("\(text)")
            }
        }
        #expect(summary.plays == Int(count))
    }

    private func replay(_ seed: UInt64) async {
        for report in await SimulationRunner.run(seed..<seed + 1, logLimit: 10_000_000) {
            print(report.lines.joined(separator: "\n"))
            for finding in report.findings { Issue.record("seed \(seed): \(finding)") }
        }
    }

    @Test("If a run hangs, the process ends with an error that contains the run's seed", .timeLimit(.minutes(10)))
    func hanging() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let watch = SimulationWatch(limit: 3, interval: 0.01)
            let world = SimulationWorld(seed: 4711, root: "/nowhere", logLimit: 10)
            _ = watch.begin(world)
            // This call never returns.
            DispatchSemaphore(value: 0).wait()
        }
        let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(text.contains("seed 4711 hangs"))
    }

    @Test("Simulated runs do not leave objects in memory", .timeLimit(.minutes(10)))
    func leaving() async throws {
        _ = await SimulationRunner.run(2_000..<2_020)
        #expect(SimulationWorld.count.load(ordering: .relaxed) == 0)
    }

    @Test("Two runs with the same seed are identical in every step", .timeLimit(.minutes(10)))
    func repeats() async throws {
        let count = environment["SPOOL_PLAYS"].flatMap(UInt64.init) ?? 20
        let seeds = 1_000..<1_000 + count
        let first = await SimulationRunner.run(seeds, logLimit: 10_000_000)
        let second = await SimulationRunner.run(seeds, logLimit: 10_000_000)
        for (one, other) in zip(first, second) where one.digest != other.digest || one.steps != other.steps {
            let pairs = zip(one.lines, other.lines).enumerated()
            let index = pairs.first { $0.element.0 != $0.element.1 }?.offset ?? min(one.lines.count, other.lines.count)
            let parts = [one, other].map { $0.lines.dropFirst(max(0, index - 3)).prefix(6).joined(separator: "\n") }
            Issue.record("seed \(one.seed) differs from line \(index) on:\n\(parts.joined(separator: "\n--\n"))")
        }
        #expect(first.count == seeds.count)
    }
}
