import Foundation
import SpoolTesting
import Testing

private let runCount = ProcessInfo.processInfo.environment["SPOOL_COMPATIBILITY_RUNS"].flatMap { Int($0) } ?? 40

/// Random origins with harmless irregularities (see ``CompatibilityRun``).
///
/// `SPOOL_COMPATIBILITY_RUNS` sets the number of runs, and `SPOOL_COMPATIBILITY_SEED` the first seed.
/// `SPOOL_COMPATIBILITY_UNPROVEN=1` also includes media without strong validators.
@Suite(.serialized, .timeLimit(.minutes(max(5, runCount / 20)))) struct SeededCompatibilityTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seed = environment["SPOOL_COMPATIBILITY_SEED"].flatMap { UInt64($0) } ?? 1
    private static let isUnproven = environment["SPOOL_COMPATIBILITY_UNPROVEN"] == "1"

    @Test("E390: whatever the irregularities of an origin, each client receives the same bytes as without Spool")
    func runs() async throws {
        var all = CompatibilityRun.Result()
        let start = ContinuousClock.now
        for number in 0..<runCount {
            let run = CompatibilityRun(seed: Self.seed + UInt64(number), isUnproven: Self.isUnproven)
            let result = try await Self.reported(run)
            all.problems += result.problems
            all.compared += result.compared
            all.skipped += result.skipped
            if all.problems.count >= 20 || Task.isCancelled { break }
        }
        print("\(all.compared) compared, \(all.skipped) skipped, in \(ContinuousClock.now - start)")
        for problem in all.problems { Issue.record("\(problem)") }
        // If many requests from plain clients fail, the test does not check enough.
        #expect(all.skipped <= all.compared / 10)
    }

    @Test("E520: concurrent clients receive a whole page from an origin without ranges, even if some of them leave")
    func concurrentPage() async throws {
        // The fault affected one of twelve runs.
        let problems = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<40 {
                group.addTask { try await Self.reported(CompatibilityRun(seed: 713_228, isUnproven: false)).problems }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(problems == [])
    }

    /// Performs a run. If the time limit of the suite cancels the run, reports its seed.
    private static func reported(_ run: CompatibilityRun) async throws -> CompatibilityRun.Result {
        do {
            return try await run.run()
        } catch is CancellationError {
            return CompatibilityRun.Result(problems: ["\(run.description): did not end"])
        }
    }
}
