import ArgumentParser
import Spool

/// `spool offline rm`: let go of a set, or of some of its media.
struct OfflineRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Let go of a set, or of media in it: it may be evicted when room is needed.",
        discussion: "What another set has, or is pinned for itself, stays pinned. “spool rm” frees the room at once.")

    struct Report: Encodable, Sendable {
        var set: String
        var removed: [String]
    }

    @OptionGroup var options: CacheOptions
    @Argument(help: "The set's name.") var set: String
    @Argument(help: "The URLs of the media; all of the set without any.") var urls: [MediaURL] = []

    func run() async throws {
        let outcome = try await options.withExistingCache { cache -> (removed: [String], failures: [any Error]) in
            let downloads = cache.downloads
            guard let found = try await downloads.set(set) else { return ([], [OfflineReport.noSet(set)]) }
            guard !urls.isEmpty else {
                try await downloads.release(set)
                return (found.items.map(\.address), [])
            }
            var removed: [String] = []
            var failures: [any Error] = []
            for source in urls.map({ MediaSource(url: $0.url) }) {
                if try await downloads.remove(source, from: set) {
                    removed.append(source.displayAddress)
                } else {
                    failures.append(
                        CacheError(.notStored, "the set “\(set.shown)” does not have \(source.displayAddress)"))
                }
            }
            return (removed, failures)
        }
        let (removed, failures) = outcome ?? ([], [OfflineReport.noSet(set)])
        if options.json {
            try Output.json(Report(set: set, removed: removed))
        } else {
            for address in removed { try Output.line("released \(address)") }
        }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }
}
