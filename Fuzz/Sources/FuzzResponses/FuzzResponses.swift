import Foundation
import Glibc
import Logging
import Spool
import SpoolHTTP
import Synchronization

/// A fuzzer that sends mutated responses over a socket to the HTTP client and the cache. It runs one seeded case after
/// another until its time runs out.
///
/// A crash ends the process; `Fuzz/responses` prints its seed and continues. Other findings are:
/// - a wait of more than a second beyond a timeout
/// - more requests than retries explain
/// - a case that takes more than 30 seconds, or does not end
@main struct FuzzResponses {
    static func main() async throws {
        let arguments = CommandLine.arguments
        func option(_ name: String) -> String? {
            arguments.firstIndex(of: name).flatMap { arguments.indices.contains($0 + 1) ? arguments[$0 + 1] : nil }
        }
        guard let folder = option("--corpus"), let first = option("--seed").flatMap({ UInt64($0) }) else {
            print("usage: FuzzResponses --corpus FOLDER --seed N [--seconds N] [--note FILE]")
            exit(2)
        }
        let seconds = option("--seconds").flatMap { Int($0) } ?? 0
        let corpus = try Corpus(URL(fileURLWithPath: folder))
        let server = try HostileServer(corpus)
        let deadline = ContinuousClock.now + .seconds(seconds)
        var seed = first
        watch()
        var totals = FuzzCase.Totals()
        repeat {
            if let note = option("--note") { try String(seed).write(toFile: note, atomically: false, encoding: .utf8) }
            current.withLock { $0 = (seed, .now) }
            try await FuzzCase(seed: seed, server: server).run(&totals)
            seed += 1
        } while ContinuousClock.now < deadline
        print("seeds \(first)..<\(seed): \(totals)")
        exit(totals.findings == 0 ? 0 : 1)
    }

    /// The seed and the start time of the current case.
    private static let current = Mutex((seed: UInt64(0), since: ContinuousClock.now))

    /// Aborts the process if a case takes more than 60 seconds.
    private static func watch() {
        Thread {
            while true {
                Thread.sleep(forTimeInterval: 5)
                let (seed, since) = current.withLock { $0 }
                guard ContinuousClock.now - since > .seconds(60) else { continue }
                print("seed \(seed): never ends")
                abort()
            }
        }.start()
    }
}
