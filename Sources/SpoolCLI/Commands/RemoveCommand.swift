import ArgumentParser
import Foundation
import Spool

/// `spool rm`: remove resources from the cache, pinned or not.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove resources from the cache, pinned or not.")

    struct Report: Encodable, Sendable {
        var removed: [String]
        var bytes: Int64
    }

    @OptionGroup var options: CacheOptions
    @Flag(help: "Remove everything.") var all = false
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []

    func validate() throws {
        if all == !urls.isEmpty { throw ValidationError("give either URLs or --all") }
    }

    func run() async throws {
        let urls = urls
        let all = all
        let wanted = Set(urls.map(\.key))
        let found: [CachedMedia]? = try await options.withExistingCache { cache in
            let found = try await cache.contents().filter { all || wanted.contains($0.key) }
            for media in found { try await cache.remove(media.key) }
            return found
        }
        let removed = found ?? []
        let gone = Set(removed.map(\.key))
        if let missing = urls.first(where: { !gone.contains($0.key) }) { throw missing.notStored }
        let report = Report(
            removed: removed.map(\.address), bytes: removed.reduce(0) { $0 + $1.cachedBytes })
        if options.json { return try Output.json(report) }
        Output.line("removed \(report.removed.count) resources, \(ByteCount(bytes: report.bytes).text)")
    }
}
