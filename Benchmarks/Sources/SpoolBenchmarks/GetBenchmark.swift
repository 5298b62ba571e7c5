import Foundation
import Spool

extension Benchmark {
    /// The command `spool get` with an empty cache, compared with a command that writes the same file with the same
    /// HTTP client.
    static let get = Benchmark(
        name: "get",
        summary: "fetching 2 GiB from nginx on loopback, each in a separate process; higher is better"
    ) {
        let length: Int64 = 2 << 30
        let origin = try await LocalOrigin()
        let url = try origin.makeFile("large.bin", byteCount: length)
        let size = Double(length) / 1e6
        var costs: [ProcessCost] = []
        var peerCosts: [ProcessCost] = []

        let pair = try await Pair.alternating(rounds: 7) {
            let folder = try TemporaryFolder("get")
            costs.append(try await measure([spool(), "get", url.absoluteString, "--cache", folder.url.path]))
            return size / (costs.last?.seconds ?? .nan)
        } peer: {
            let folder = try TemporaryFolder("fetch")
            peerCosts.append(try await measure(BenchmarkTask(url: url, file: folder.file("large.bin")).command))
            return size / (peerCosts.last?.seconds ?? .nan)
        }

        var table = Table("command", "MB/s", "slowest", "fastest", "CPU s/GB", "peak memory, MB")
        for (name, rates, costs) in [
            ("spool get", pair.spool, costs), ("the HTTP client alone", pair.peer, peerCosts),
        ] {
            table.add(
                name, figure(median(rates)), figure(rates.min() ?? .nan), figure(rates.max() ?? .nan),
                decimal(median(costs.compactMap(\.processorSeconds)) / size * 1000), figure(peak(costs)))
        }
        table.note =
            "nginx with sendfile on, tcp_nopush off; the CPU column does not include nginx. "
            + "Peak memory is the maximum of all rounds."
        return Report(
            tables: [table],
            goals: [
                Goal(
                    name: "spool get into an empty cache, vs. the HTTP client writing a file",
                    spool: "\(figure(median(pair.spool))) MB/s", peer: "\(figure(median(pair.peer))) MB/s",
                    ratio: decimal(pair.ratio), goal: "≥ 0.7", isMet: pair.ratio >= 0.7),
                Goal(
                    name: "spool get of 2 GiB, peak memory", spool: "\(figure(peak(costs))) MB",
                    peer: "\(figure(peak(peerCosts))) MB", goal: "≤ 80 MB", isMet: peak(costs) <= 80),
            ])
    }
}

/// Returns the highest peak memory of all runs, in MB.
private func peak(_ costs: [ProcessCost]) -> Double {
    costs.compactMap(\.peakMemory).max().map { Double($0) / 1e6 } ?? .nan
}

/// Returns the path of the `spool` command that was built with the benchmarks.
private func spool() throws -> String {
    let program = URL(filePath: Bundle.main.executablePath ?? CommandLine.arguments[0])
    let path = program.deletingLastPathComponent().appending(path: "spool").path
    guard FileManager.default.isExecutableFile(atPath: path) else { throw BenchmarkError("\(path) is missing") }
    return path
}
