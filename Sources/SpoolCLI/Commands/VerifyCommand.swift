#if Tools
import ArgumentParser
import ByteRanges
import Foundation
import Spool
import Synchronization

/// `spool verify`: checks every stored block against its checksum.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check every stored block against its checksum.")

    struct Report: Encodable, Sendable {
        var blocks: Int
        var bad: Int
        var dropped: Int
        var unchecked: Int
    }

    @OptionGroup var options: CacheOptions
    @Flag(help: "Discard damaged blocks, so that they are fetched again when needed.") var repair = false

    func run() async throws {
        let found = try await options.withExistingCache { try await check($0) }
        if found == nil { options.reportMissingCache() }
        let report = Report(
            blocks: found?.blockCount ?? 0, bad: found?.damagedBlockCount ?? 0,
            dropped: found?.discardedBlockCount ?? 0,
            unchecked: found?.uncheckedBlockCount ?? 0)
        if options.json {
            try Output.json(report)
        } else {
            let rest = report.unchecked > 0 ? ", \(report.unchecked) not checked" : ""
            try Output.line(
                "\(report.blocks.counted("block")) checked, \(report.bad) damaged, \(report.dropped) discarded\(rest)")
        }
        let bad = report.bad - report.dropped
        var failures: [any Error] = []
        if bad > 0 {
            let are = "\(bad.counted("block")) \(bad == 1 ? "is" : "are") damaged"
            failures.append(
                CommandFailure(.damaged, "\(are); --repair discards damaged blocks, so that they are fetched again"))
        }
        if let cause = found?.uncheckedCause {
            failures.append(
                CacheError(.storage, "\(report.unchecked.counted("block")) could not be checked: \(cause)"))
        }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }

    private func check(_ cache: MediaCache) async throws -> VerificationReport {
        let progress = Mutex((done: 0, of: 0))
        let line = LiveLine { _ in
            let (done, total) = progress.withLock { $0 }
            return "checked \(done.grouped) of \(total.counted("block"))"
        }
        do {
            let result = try await cache.verify(repairing: repair) { now in
                progress.withLock { $0 = (now.checked, now.total) }
            }
            await line.end()
            return result
        } catch {
            await line.end()
            throw error
        }
    }
}
#endif
