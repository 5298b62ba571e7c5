import Foundation
import Testing

/// Simulated runs with new seeds, for a given time. `make soak SECONDS=n` runs them.
@Suite("Soak test", .enabled(if: ProcessInfo.processInfo.environment["SPOOL_SOAK"] != nil))
struct SoakTests {
    @Test("Simulated runs with new seeds find no faults")
    func soak() async throws {
        let environment = ProcessInfo.processInfo.environment
        let seconds = try #require(environment["SPOOL_SOAK"].flatMap(Int.init), "SPOOL_SOAK is a number of seconds")
        let folder = environment["SPOOL_SOAK_FOLDER"]
        // The seed is small enough to type, and differs from the seeds of all other tests.
        let first = UInt64.random(in: 1_000_000..<1_000_000_000_000)
        let deadline = ContinuousClock.now + .seconds(seconds)
        let reports = await SimulationRunner.run(first..<first + 1_000_000_000, until: deadline, noting: folder)
        let summary = SimulationSummary(reports)
        print("soak: \(summary)")
        for group in summary.groups.prefix(20) {
            let seed = group.seeds[0]
            Issue.record("\(group.example); replay: SPOOL_SEED=\(seed) make soak")
        }
        if let folder { try add(summary, to: "\(folder)/totals") }
    }

    /// Adds the counts in a summary to those of previous runs, and prints the sums.
    private func add(_ summary: SimulationSummary, to path: String) throws {
        let previous = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""  // Empty before the first run.
        var totals = previous.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        if totals.count != 4 { totals = [0, 0, 0, 0] }
        for (index, count) in [1, summary.plays, summary.operations, summary.failures].enumerated() {
            totals[index] += count
        }
        try totals.map(String.init).joined(separator: " ").write(toFile: path, atomically: true, encoding: .utf8)
        print(
            "soak: in all \(totals[0]) runs, \(totals[1]) plays, \(totals[2]) operations, \(totals[3]) plays with findings"
        )
    }
}
