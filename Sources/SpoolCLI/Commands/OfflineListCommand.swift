import ArgumentParser
import Spool

/// `spool offline list`: what the sets have, and what of it is missing.
struct OfflineListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what sets have, and how much of it is there; also while another process uses it.",
        discussion: "With a set's name, the exit status is 1 if something of it is missing.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The set's name; all sets without it.") var set: String?

    func run() async throws {
        var sets: [DownloadSet] = []
        do {
            sets = try await Downloads.inspect(options.directory, encryptionKey: options.keys.key())
        } catch let error as CacheError where error.code == .notStored {
            options.tellOfNoCache()
        }
        if let set {
            sets = sets.filter { $0.name == set }
            if sets.isEmpty { throw OfflineReport.noSet(set) }
        }
        let reports = sets.flatMap { set in set.items.map { OfflineReport($0, in: set.name) } }
        if options.json { try Output.json(reports) } else { for report in reports { try Output.line(report.text) } }
        let missing = sets.flatMap(\.missing)
        guard let set, !missing.isEmpty else { return }
        let count = "\(missing.count) of \(reports.count)"
        throw CommandFailures(all: [
            CacheError(.incomplete, "\(count) in “\(set.shown)” \(missing.count == 1 ? "is" : "are") not complete")
        ])
    }
}
