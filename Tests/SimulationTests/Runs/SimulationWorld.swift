import Foundation
import Spool
import SpoolTesting
import Synchronization

/// The shared state of one simulated run: time, origin, log and findings.
final class SimulationWorld: Sendable {
    /// The number of instances, which is 0 between runs.
    static let count = Atomic(0)

    private struct Wait {
        var label: @Sendable () -> String
        var since: Duration
        var life: CacheLifetime?
        /// Whether a player waits for bytes.
        var isPlayback: Bool
    }

    /// A period in which players in one lifetime of the cache have waited for bytes, interrupted only by pauses of less
    /// than a second.
    private struct Streak {
        var since: Duration
        var lastEnd: Duration?
        var running = 0
    }

    private struct State {
        var streaks: [Int: Streak] = [:]
        var findings: [Finding] = []
        var operations = 0
        var waits: [Int: Wait] = [:]
        var lastWait = 0
        var isAborted = false
        /// The difference between the wall clock and the virtual clock, in seconds.
        var clockOffset: Double = 0
        var mayRepeat: Int64 = 0
        var uncounted: Int64 = 0
    }

    /// The maximum duration of any wait, which exceeds that of all retries and timeouts.
    static let bound = Duration.seconds(300)

    let plan: SimulationPlan
    let executor: SeededExecutor
    let origin: SimulationOrigin
    let log: SimulationLog
    /// The directory that contains the catalogs of all lifetimes.
    let root: String
    private let state = Mutex(State())
    private let engineRandom: Mutex<SplitMix>

    init(seed: UInt64, root: String, logLimit: Int) {
        plan = SimulationPlan(seed: seed)
        executor = SeededExecutor(seed: seed)
        log = SimulationLog(clock: executor.clock, limit: logLimit)
        origin = SimulationOrigin(plan, clock: executor.clock, log: log)
        self.root = root
        engineRandom = Mutex(SplitMix(seed &+ 0xE6))
        Self.count.add(1, ordering: .relaxed)
    }

    deinit { Self.count.subtract(1, ordering: .relaxed) }

    // MARK: - Time and randomness

    var cacheClock: CacheClock {
        var clock = CacheClock(clock: executor.clock) { [self] in
            let (seconds, fraction) = executor.clock.now.offset.components
            return Date(
                timeIntervalSince1970: 1_800_000_000 + Double(seconds) + Double(fraction) * 1e-18
                    + state.withLock { $0.clockOffset })
        }
        clock.networkSleep = clock.sleep
        clock.random = { [self] in engineRandom.withLock { $0.next() } }
        return clock
    }

    func jump(bySeconds seconds: Double) { state.withLock { $0.clockOffset += seconds } }

    func sleep(_ duration: Duration) async {
        // The sleep ends early only when the run is over.
        try? await executor.clock.sleep(until: executor.clock.now.advanced(by: duration))
    }

    /// Starts a task that belongs to the run.
    func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: executor) { await body() }
    }

    /// Returns the text without the name of the run's folder, which differs each time.
    func withoutRoot(_ text: String) -> String {
        text.utf8.contains(UInt8(ascii: "/")) ? text.replacingOccurrences(of: root, with: "") : text
    }

    // MARK: - Findings

    var findings: [Finding] { state.withLock { $0.findings } }
    var operations: Int { state.withLock { $0.operations } }
    var isAborted: Bool { state.withLock { $0.isAborted } }

    /// Reports a finding, unless it belongs to a lifetime that ended with a kill.
    func report(_ kind: Finding.Kind, _ text: @autoclosure () -> String, in life: CacheLifetime? = nil) {
        if let life, life.isDead { return }
        let finding = Finding(kind: kind, text: "\(life.map { "life \($0.number): " } ?? "")\(withoutRoot(text()))")
        log.add("FINDING", "\(finding)")
        state.withLock { $0.findings.append(finding) }
    }

    func countOperation() { state.withLock { $0.operations += 1 } }

    /// Allows a number of bytes to be sent again, and logs the reason.
    func allowRepeating(_ bytes: Int64, _ reason: String) {
        log.add("play", "\(bytes) bytes may be sent again: \(reason)")
        state.withLock { $0.mayRepeat += bytes }
    }

    /// Records that a damaged catalog counts fewer bytes than are stored.
    func recordUncounted(_ bytes: Int64) { state.withLock { $0.uncounted += bytes } }

    /// The number of bytes that damaged catalogs did not count. The excess is evicted only after the damaged rows are
    /// read.
    var uncountedBytes: Int64 { state.withLock { $0.uncounted } }

    var repeatAllowance: Int64 { state.withLock { $0.mayRepeat } }

    // MARK: - Waits

    /// Runs `body`, which must not take longer than ``bound``.
    ///
    /// - Parameter label: A description of the wait, which is evaluated only for a report.
    func timed<R>(
        _ label: @autoclosure @escaping @Sendable () -> String, in life: CacheLifetime?, isPlayback: Bool = false,
        _ body: () async throws -> R
    ) async rethrows -> R {
        let now = executor.clock.now.offset
        let id = state.withLock { state in
            state.lastWait += 1
            state.waits[state.lastWait] = Wait(label: label, since: now, life: life, isPlayback: isPlayback)
            if isPlayback, let life {
                var streak = state.streaks[life.number] ?? Streak(since: now)
                if streak.running == 0, let end = streak.lastEnd, now - end >= .seconds(1) { streak.since = now }
                streak.running += 1
                state.streaks[life.number] = streak
            }
            return state.lastWait
        }
        defer {
            let end = executor.clock.now.offset
            state.withLock { state in
                _ = state.waits.removeValue(forKey: id)
                if isPlayback, let life {
                    state.streaks[life.number]?.running -= 1
                    state.streaks[life.number]?.lastEnd = end
                }
            }
        }
        return try await body()
    }

    /// Whether the origin and the disk have no faults. A waiting player then waits only for bytes in transit.
    var isCalm: Bool {
        !plan.faults.isAny && !plan.failsToStore && !plan.damages && !plan.refusesSome && plan.capacity == nil
            && plan.media.allSatisfy { $0.truncationOffset == nil } && !plan.lives.contains { $0.ending == .powerLost }
    }

    /// Returns the numbers of the players' waits that have lasted longer than `duration`.
    func playbackWaits(longerThan duration: Duration, in life: CacheLifetime) -> Set<Int> {
        let now = executor.clock.now.offset
        return state.withLock { state in
            Set(state.waits.filter { $1.isPlayback && $1.life === life && now - $1.since > duration }.keys)
        }
    }

    /// Returns whether players have waited so long, without a pause of a second, that preloads may continue.
    func mayPreloadsContinue(in life: CacheLifetime) -> Bool {
        let now = executor.clock.now.offset
        return state.withLock { state in
            state.streaks[life.number].map { now - $0.since >= .seconds(10) } ?? false
        }
    }

    /// Checks regularly for waits that take too long, and ends the run if it finds one.
    func watch(until isDone: @Sendable () -> Bool) async {
        while !isDone(), !isAborted, !Task.isCancelled {
            await sleep(.seconds(60))
            reportWaits(longerThan: Self.bound)
        }
    }

    /// Reports waits longer than `bound`, after which the run can't continue.
    func reportWaits(longerThan bound: Duration) {
        let now = executor.clock.now.offset
        let late = state.withLock { state in
            state.waits.sorted { $0.key < $1.key }.map(\.value).filter { now - $0.since > bound }
        }
        for wait in late {
            // Waits in a killed process are included, because its disk still works, and its origin rejects requests.
            report(.hang, "\(wait.label()) has waited since \(wait.since)")
            state.withLock { $0.isAborted = true }
        }
    }
}
