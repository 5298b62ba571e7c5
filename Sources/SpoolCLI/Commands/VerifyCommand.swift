import ArgumentParser
import ByteRanges
import Foundation
import Spool
import Synchronization

/// `spool verify`: check every stored block against its seal.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check every stored block against its seal.")

    struct Report: Encodable, Sendable {
        var blocks: Int
        var bad: Int
        var dropped: Int
    }

    @OptionGroup var options: CacheOptions
    @Flag(help: "Drop bad blocks, so that they are fetched again when asked for.") var repair = false

    func run() async throws {
        let found = try await options.withExistingCache { try await check($0) }
        if found == nil { options.tellOfNoCache() }
        let report = Report(blocks: found?.blocks ?? 0, bad: found?.bad ?? 0, dropped: found?.dropped ?? 0)
        if options.json {
            try Output.json(report)
        } else {
            try Output.line("\(report.blocks.counted("block")) checked, \(report.bad) bad, \(report.dropped) dropped")
        }
        guard report.bad > report.dropped else { return }
        let bad = report.bad - report.dropped
        throw CommandFailure(
            .damaged,
            "\(bad.counted("block")) \(bad == 1 ? "is" : "are") damaged; --repair drops what is, to be fetched again")
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
