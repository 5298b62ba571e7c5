import Foundation

/// What a finished process took.
struct ProcessCost: Sendable {
    /// From its start to its end.
    var seconds: Double
    /// The most memory that it had resident at once, in bytes; nil where the machine does not tell.
    var peakMemory: Int64?
}

/// Runs a command to its end, its output thrown away, and measures it.
///
/// Memory is the kernel's own high-water mark (`VmHWM`), asked for every few milliseconds until the process is gone; what
/// `wait4` reports would also count the memory that this process had when it started the other.
///
/// - Throws: ``BenchmarkError`` if it ends with anything but 0.
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
    let memory = Task {
        var peak: Int64?
        while !Task.isCancelled {
            peak = peakMemory(of: identifier) ?? peak
            try? await Task.sleep(for: .milliseconds(5))
        }
        return peak
    }
    var end = begin
    for await instant in ended { end = instant }
    memory.cancel()
    guard process.terminationStatus == 0 else {
        throw BenchmarkError("“\(command.joined(separator: " "))” ended with \(process.terminationStatus)")
    }
    return ProcessCost(seconds: (end - begin) / .seconds(1), peakMemory: await memory.value)
}

/// The most memory that a living process has had resident, in bytes.
private func peakMemory(of process: Int32) -> Int64? {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
        let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
    else { return nil }
    return line.split(separator: " ").compactMap { Int64($0) }.first.map { $0 << 10 }
}
