import Foundation
import SpoolTesting
import Testing

/// A series of processes that use one cache directory and are killed one after another.
struct KilledLives {
    private static let length: Int64 = 1_500_000
    /// The number of processes that are killed for one resource before it is fetched to its end.
    private static let killsPerResource = 6

    let seed: UInt64

    /// Starts and kills processes until `count` processes were killed or `deadline` has passed. Returns the number of
    /// killed processes.
    ///
    /// The seed determines when each process is killed: once it has locked the directory, or once the origin has sent a
    /// certain number of bytes. All printed and stored bytes must equal those at the origin.
    func run(_ count: Int, until deadline: ContinuousClock.Instant? = nil) async throws -> Int {
        var random = SplitMix(seed)
        var killed = 0
        var film = 0
        try await withOrigin([:]) { origin, spool in
            while killed < count, deadline.map({ ContinuousClock.now < $0 }) ?? true {
                film += 1
                let pattern = PatternBytes(seed: UInt64(film), length: Self.length)
                origin.set("/\(film)", OriginResource(.pattern(pattern), rules: [.always(.rate(8_000_000))]))
                let url = origin.url("/\(film)").absoluteString
                for _ in 0..<Self.killsPerResource where killed < count {
                    let printed = try await life(&random, url, origin, spool)
                    #expect(printed.count <= Self.length)
                    #expect(
                        printed == Data(pattern.bytes(0..<Int64(printed.count))), "seed \(seed): wrong bytes printed")
                    killed += 1
                }
                origin.update("/\(film)") { $0.rules = [] }
                let whole = try await spool.run("get", url, "--output", "-")
                #expect(whole.status == 0 && whole.errors.isEmpty, "seed \(seed): \(whole.errors)")
                #expect(whole.output == pattern.data, "seed \(seed): wrong bytes in the end")
            }
            // All recorded bytes must be stored, and no file may contain another resource's bytes.
            let verified = try await spool.run("verify", "--json")
            let found = try verified.json(VerifyOutput.self)
            #expect(verified.status == 0 && found.bad == 0, "seed \(seed): \(verified.text)")
            #expect(found.blocks == film * Int((Self.length + 65_535) / 65_536))
        }
        return killed
    }

    /// Starts one process and kills it. Returns its output.
    private func life(
        _ random: inout SplitMix, _ url: String, _ origin: OriginServer, _ spool: SpoolProcess
    ) async throws -> Data {
        let (requests, sent) = (origin.log.exchanges.count, origin.log.bytesSent())
        let process = try spool.start("get", url, "--output", "-")
        let bytes = Int64(random.below(400_000))
        let early = random.chance(5)
        return try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                if early {
                    try await spool.untilLocked()
                } else {
                    try await origin.log.wait { exchanges in
                        exchanges.count > requests && exchanges.reduce(0) { $0 + $1.bytesSent } - sent >= bytes
                    }
                }
                return true
            }
            group.addTask {
                // The process may have ended already, for example if no bytes were missing.
                _ = await process.end()
                return false
            }
            if try await group.next() == true { process.send(SIGKILL) }
            group.cancelAll()
            return await process.end().output
        }
    }
}

extension SpoolProcess {
    /// Waits until a process has written its name to the directory's lock file.
    fileprivate func untilLocked() async throws {
        while true {
            try Task.checkCancellation()
            let text = try? String(contentsOf: file("cache/lock"), encoding: .utf8)  // The file may not exist yet.
            if text?.contains("process") == true { return }
            await Task.yield()
        }
    }
}

@Suite("Processes killed one after another", .timeLimit(.minutes(20)))
struct KillTests {
    @Test("C33: 50 processes killed at random times print correct bytes and leave a usable cache")
    func fifty() async throws {
        #expect(try await KilledLives(seed: 33).run(50) == 50)
    }
}

/// Tests that `make soak SECONDS=n` runs for `n` seconds, with new seeds.
@Suite("Soak test of killed processes", .enabled(if: ProcessInfo.processInfo.environment["SPOOL_SOAK"] != nil))
struct KillSoakTests {
    @Test("C33: processes killed at random times neither lose nor damage recorded bytes")
    func soak() async throws {
        let environment = ProcessInfo.processInfo.environment
        let seconds = try #require(environment["SPOOL_SOAK"].flatMap(Int.init), "SPOOL_SOAK is a number of seconds")
        let deadline = ContinuousClock.now + .seconds(seconds)
        let seed = UInt64.random(in: 1_000_000..<1_000_000_000)
        var killed = 0
        repeat {
            killed += try await KilledLives(seed: seed + UInt64(killed)).run(200, until: deadline)
        } while ContinuousClock.now < deadline
        print("soak: \(killed) processes killed, from seed \(seed) on")
    }
}
