import Foundation
import Spool

extension Benchmark {
    /// A cold `spool get` as a whole command, beside a command that writes the same file with the same HTTP client.
    static let get = Benchmark(
        name: "get",
        summary: "fetching 2 GiB from nginx on loopback, each as a process of its own; higher is better"
    ) {
        let length: Int64 = 2 << 30
        let origin = try await LocalOrigin()
        let url = try origin.makeFile("large.bin", byteCount: length)
        let size = Double(length) / 1e6
        var memory: [Double] = []
        var peerMemory: [Double] = []

        let pair = try await Pair.alternating(rounds: 7) {
            let folder = try TemporaryFolder("get")
            let cost = try await measure(getCommand(url, cache: folder.url))
            if let peak = cost.peakMemory { memory.append(Double(peak) / 1e6) }
            return size / cost.seconds
        } peer: {
            let folder = try TemporaryFolder("fetch")
            let cost = try await measure(Errand.fetch(url: url, file: folder.file("large.bin")).command)
            if let peak = cost.peakMemory { peerMemory.append(Double(peak) / 1e6) }
            return size / cost.seconds
        }

        let name = getCommandName
        var table = Table("command", "MB/s", "slowest", "fastest", "peak memory, MB")
        for (name, rates, peaks) in [(name, pair.spool, memory), ("the HTTP client alone", pair.peer, peerMemory)] {
            table.add(
                name, figure(median(rates)), figure(rates.min() ?? 0), figure(rates.max() ?? 0),
                figure(peaks.max() ?? .nan))
        }
        table.note = "nginx with sendfile on, tcp_nopush off. Peak memory is the largest of all rounds."
        let peak = memory.max() ?? .nan
        return Report(
            tables: [table],
            promises: [
                Promise(
                    name: "\(name), beside its HTTP client writing a file", spool: "\(figure(median(pair.spool))) MB/s",
                    peer: "\(figure(median(pair.peer))) MB/s", ratio: decimal(pair.ratio), goal: "≥ 0.7",
                    isMet: pair.ratio >= 0.7),
                Promise(
                    name: "\(name), peak memory", spool: "\(figure(peak)) MB",
                    peer: "\(figure(peerMemory.max() ?? .nan)) MB", goal: "≤ 80 MB", isMet: peak <= 80),
            ])
    }
}

/// The `spool` that was built with the benchmarks, or nil if there is none yet.
private let spool: String? = {
    let program = URL(filePath: Bundle.main.executablePath ?? CommandLine.arguments[0])
    let path = program.deletingLastPathComponent().appending(path: "spool").path
    return FileManager.default.isExecutableFile(atPath: path) ? path : nil
}()

private var getCommandName: String { spool == nil ? "get, in-process engine" : "spool get" }

private func getCommand(_ url: URL, cache: URL) -> [String] {
    if let spool { return [spool, "get", url.absoluteString, "--cache", cache.path] }
    return Errand.get(url: url, cache: cache).command
}
