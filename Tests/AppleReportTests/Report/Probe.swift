import Foundation
import Spool
import SpoolAVFoundation
import Synchronization

/// A question about a platform, and the code that determines the result. A probe does not check expectations.
struct Probe: Sendable {
    /// The part of a platform that a result describes.
    enum Subject: Sendable {
        /// The AVFoundation implementation.
        case player
        /// The operating system: files and URLSession.
        case system
    }

    let number: Int
    let question: String
    let subject: Subject
    /// The time limit in seconds.
    var limit = 30.0
    let run: @MainActor @Sendable (ProbeContext) async throws -> Observation

    init(
        _ number: Int, _ question: String, _ subject: Subject = .player, limit: Double = 30,
        run: @escaping @MainActor @Sendable (ProbeContext) async throws -> Observation
    ) {
        self.number = number
        self.question = question
        self.subject = subject
        self.limit = limit
        self.run = run
    }
}

/// The result of a probe.
struct Observation: Sendable {
    var result: String
    var details: [String] = []

    init(_ result: String, details: [String] = []) {
        self.result = result
        self.details = details
    }
}

/// The error thrown by a probe that requires an API that is not available on the platform, or an event that no program
/// can cause.
struct Unavailable: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// The origin, the directory and the traces that all probes share.
final class ProbeContext: Sendable {
    let origin: ReportOrigin
    private let directory: URL
    private let traces = Mutex<[String: LoadingTrace]>([:])
    private let caches = Mutex(0)

    init() throws {
        origin = try ReportOrigin(files: Fixtures.all)
        directory = FileManager.default.temporaryDirectory.appending(path: "spool-report-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit {
        origin.stop()
        try? FileManager.default.removeItem(at: directory)  // If removal fails, the system removes the directory later.
    }

    /// Returns a new cache in a separate directory.
    func cache() -> MediaCache { MediaCache(directory: newDirectory()) }

    /// Returns a directory that does not exist yet.
    func newDirectory() -> URL {
        let number = caches.withLock { count in
            count += 1
            return count
        }
        return directory.appending(path: "\(number)/media")
    }

    /// Adds a trace to the report.
    func record(_ trace: LoadingTrace, of name: String) { traces.withLock { $0[name] = trace } }

    var recordedTraces: [String: LoadingTrace] { traces.withLock { $0 } }
}

extension Report {
    /// Runs the probes one after another, each with its time limit, and returns their results.
    @MainActor static func run(_ probes: [Probe], in context: ProbeContext) async -> Report {
        var report = Report(
            system: Platform.system, model: Platform.model, avFoundation: Platform.avFoundation)
        for probe in probes {
            let start = ContinuousClock.now
            let outcome = await outcome(of: probe, in: context)
            let seconds = start.duration(to: .now) / .seconds(1)
            var finding = Finding(
                number: probe.number, question: probe.question, state: .recorded, result: "", details: [],
                source: probe.subject == .player ? Platform.avFoundation : Platform.system,
                seconds: (seconds * 1000).rounded() / 1000)
            switch outcome {
            case .success(let observation):
                (finding.result, finding.details) = (observation.result, observation.details)
            case .failure(let error as Unavailable): (finding.state, finding.result) = (.unavailable, error.reason)
            case .failure(is TimedOut):
                finding.state = .timedOut
                finding.result = "no result within \(Int(probe.limit)) s"
            case .failure(let error): (finding.state, finding.result) = (.failed, String(describing: error))
            }
            report.findings.append(finding)
        }
        report.traces = context.recordedTraces
        return report
    }

    private struct TimedOut: Error {}

    /// Returns the result of a probe, or the error `TimedOut`.
    @MainActor private static func outcome(
        of probe: Probe, in context: ProbeContext
    ) async -> Result<Observation, any Error> {
        let work = Task { @MainActor in try await probe.run(context) }
        return await result(of: work, within: probe.limit) ?? .failure(TimedOut())
    }
}

/// Returns the result of a task. If the task does not end within `seconds`, cancels it and returns `nil`.
///
/// The function does not wait for the end of a cancelled task, because a player may never call back.
func result<Value: Sendable>(
    of task: Task<Value, any Error>, within seconds: Double
) async -> Result<Value, any Error>? {
    let (results, continuation) = AsyncStream<Result<Value, any Error>?>.makeStream()
    let waiting = Task { _ = continuation.yield(await task.result) }
    let limit = Task {
        try? await Task.sleep(for: .seconds(seconds))  // The sleep is cancelled if the task ends first.
        _ = continuation.yield(nil)
    }
    defer {
        task.cancel()
        waiting.cancel()
        limit.cancel()
    }
    for await result in results { return result }
    return nil
}

/// Waits until a condition is true, for at most `seconds`. Returns whether the condition became true.
///
/// A report observes real players in real time, so it polls instead of using an injected clock.
@MainActor func wait(_ seconds: Double = 10, until condition: () async -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(seconds)
    while true {
        if await condition() { return true }
        guard ContinuousClock.now < end else { return false }
        try await Task.sleep(for: .milliseconds(20))
    }
}
