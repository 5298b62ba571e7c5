import Foundation

/// The measured cost of a finished process.
struct ProcessCost: Sendable {
    /// The time from the start of the process to its end, in seconds.
    var seconds: Double
    /// The peak resident memory in bytes, or `nil` if the system does not report it.
    var peakMemory: Int64?
    /// The processor time in user and kernel mode, in seconds, or `nil` if the system does not report it.
    var processorSeconds: Double?
}

/// Runs a command, discards its output, and measures its cost.
///
/// The memory is the kernel's high-water mark (`VmHWM`). Like the processor time, it is read every 5 ms until the
/// process ends. The result of `wait4` would include the memory that this process was using when it started the
/// command.
///
/// - Throws: ``BenchmarkError`` if the exit status is not 0.
func measure(_ command: [String]) async throws -> ProcessCost {
    let process = Process()
    process.executableURL = URL(filePath: command[0])
    process.arguments = Array(command.dropFirst())
    process.standardOutput = FileHandle.nullDevice
    let begin = ContinuousClock.now
    let (ended, ending) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
    process.terminationHandler = { _ in
        ending.yield(ContinuousClock.now)
        ending.finish()
    }
    try process.run()
    let identifier = process.processIdentifier
    let watch = Task {
        var cost = ProcessCost(seconds: 0)
        while !Task.isCancelled {
            cost.peakMemory = peakMemory(of: identifier) ?? cost.peakMemory
            cost.processorSeconds = processorSeconds(of: identifier) ?? cost.processorSeconds
            try? await Task.sleep(for: .milliseconds(5))
        }
        return cost
    }
    var end = begin
    for await instant in ended { end = instant }
    watch.cancel()
    guard process.terminationStatus == 0 else {
        throw BenchmarkError("“\(command.joined(separator: " "))” ended with \(process.terminationStatus)")
    }
    var cost = await watch.value
    cost.seconds = (end - begin) / .seconds(1)
    return cost
}

/// Returns the peak resident memory of a running process, in bytes.
private func peakMemory(of process: Int32) -> Int64? {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
        let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
    else { return nil }
    return line.split(separator: " ").compactMap { Int64($0) }.first.map { $0 << 10 }
}

/// Returns the processor time of a running process, in seconds.
///
/// Fields 14 and 15 of `/proc/…/stat` are in hundredths of a second (proc(5)). The name before them may contain spaces.
private func processorSeconds(of process: Int32) -> Double? {
    guard let stat = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
        let end = stat.lastIndex(of: ")")
    else { return nil }
    let fields = stat[end...].split(separator: " ")
    guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]), user + system > 0 else {
        return nil
    }
    return (user + system) / 100
}
