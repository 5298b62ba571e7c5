import Foundation
import Synchronization

/// A runner that performs simulated runs on its own threads, each of which takes one seed after another.
///
/// If a run hangs, its seed is printed and the process ends (see ``SimulationWatch``).
final class SimulationRunner: Sendable {
    private struct State {
        /// The remaining seeds.
        var seeds: Range<UInt64>
        var reports: [PlaybackReport] = []
    }

    private let state: Mutex<State>
    private let logLimit: Int
    private let deadline: ContinuousClock.Instant?
    private let folder: String?
    private let watch = SimulationWatch()

    private init(_ seeds: Range<UInt64>, logLimit: Int, deadline: ContinuousClock.Instant?, folder: String?) {
        state = Mutex(State(seeds: seeds))
        self.logLimit = logLimit
        self.deadline = deadline
        self.folder = folder
    }

    /// Performs the runs for `seeds` until `deadline`, and returns the reports in the order of the seeds.
    ///
    /// - Parameters:
    ///   - logLimit: The number of log lines to retain for each run.
    ///   - folder: A directory with a file for each thread, which contains the thread's current seed in case of a
    ///     crash.
    static func run(
        _ seeds: Range<UInt64>, logLimit: Int = 40, until deadline: ContinuousClock.Instant? = nil,
        noting folder: String? = nil
    ) async -> [PlaybackReport] {
        let runner = SimulationRunner(seeds, logLimit: logLimit, deadline: deadline, folder: folder)
        let threads = max(1, min(ProcessInfo.processInfo.activeProcessorCount, 8))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<threads as Range<Int> { group.addTask { await runner.work(number) } }
        }
        runner.watch.end()
        return runner.state.withLock { $0.reports.sorted { $0.seed < $1.seed } }
    }

    /// Performs one run after another on a separate thread, which is not one of Swift's shared threads.
    private func work(_ number: Int) async {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                let note = self.folder.map { "\($0)/playing-\(number)" }
                while let seed = self.takeSeed() {
                    // If the write fails, the seed is unknown after a crash, and there is no other effect.
                    if let note { try? Data("\(seed)\n".utf8).write(to: URL(fileURLWithPath: note)) }
                    let report = SimulatedRun.run(seed: seed, logLimit: self.logLimit, watch: self.watch)
                    self.state.withLock { $0.reports.append(report) }
                }
                if let note { try? FileManager.default.removeItem(atPath: note) }  // A failure is harmless.
                continuation.resume()
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    private func takeSeed() -> UInt64? {
        if let deadline, ContinuousClock.now >= deadline { return nil }
        return state.withLock { $0.seeds.popFirst() }
    }
}
