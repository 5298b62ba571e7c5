import Foundation

/// What a finished process took.
struct ProcessCost: Sendable {
    /// From its start to its end.
    var seconds: Double
    /// The most memory that it had resident at once, in bytes; nil where the machine does not tell.
    var peakMemory: Int64?
    /// Seconds of processor time, its own and the kernel's for it; nil where the machine does not tell.
    var processorSeconds: Double?
}

/// Runs a command to its end, its output thrown away, and measures it.
///
/// Memory is the kernel's own high-water mark (`VmHWM`), asked for every few milliseconds until the process is gone, as
/// is its processor time; what `wait4` reports would also count the memory that this process had when it started the
/// other.
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

/// The most memory that a living process has had resident, in bytes.
private func peakMemory(of process: Int32) -> Int64? {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
        let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
    else { return nil }
    return line.split(separator: " ").compactMap { Int64($0) }.first.map { $0 << 10 }
}

/// Fields 14 and 15 of `/proc/…/stat`, in hundredths of a second (proc(5)); the name before them may hold spaces.
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
