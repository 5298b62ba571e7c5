#if Tools
import ArgumentParser
import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// `spool rm`: removes resources from the cache, including pinned ones.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove resources from the cache, pinned or not.",
        discussion: "If some resources can't be removed, the others are still removed, and the exit status is 1.")

    struct Report: Encodable, Sendable {
        var removed: [String]
        var bytes: Int64
    }

    @OptionGroup var options: CacheOptions
    @Flag(help: "Remove everything.") var all = false
    @Option(
        help: ArgumentHelp(
            "Remove all media whose URL starts with this one, such as https://example.com/show/.", valueName: "url"))
    var prefix: String?
    @Option(
        help: ArgumentHelp(
            "Remove all media with this tag in the origin's Surrogate-Key or Cache-Tag.", valueName: "tag"))
    var tag: String?
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []

    func validate() throws {
        guard [all, !urls.isEmpty, prefix != nil, tag != nil].count(where: { $0 }) == 1 else {
            throw ValidationError("give one of URLs, --all, --prefix and --tag")
        }
        if let prefix, PurgeSelection(prefix: prefix) == nil {
            throw ValidationError("--prefix must be a URL with a host, without a query")
        }
        if let tag, PurgeSelection(tag: tag) == nil {
            throw ValidationError("--tag must be a tag without spaces or commas")
        }
    }

    func run() async throws {
        let urls = urls
        let all = all
        let selection = prefix.flatMap { PurgeSelection(prefix: $0) } ?? tag.flatMap { PurgeSelection(tag: $0) }
        let outcome = try await options.withExistingCache { cache in
            if let selection { return try await Self.purge(selection, in: cache) }
            let contents = try await cache.storedResources()
            let stored = Set(contents.map(\.key))
            let wanted = Set(urls.map(\.key))
            var removed: [StoredPresentation] = []
            var failures: [any Error] = urls.filter { !stored.contains($0.key) }.map(\.notStored)
            let presentations = StoredPresentation.presentations(in: contents)
            let parts = presentations.flatMap(\.parts).map { StoredPresentation(media: $0) }
            // Parts of a stream can also be removed by their own URLs.
            for stored in presentations + (all ? [] : parts) where all || wanted.contains(stored.media.key) {
                do {
                    try await cache.remove(stored.media.key)
                    removed.append(stored)
                } catch let error as CacheError {
                    failures.append(error)
                }
            }
            return (removed: removed, failures: failures)
        }
        let (removed, failures) = outcome ?? ([], urls.map(\.notStored))
        let bytes = removed.reduce(0) { min($0 + $1.byteCount, NumberLimits.byteOffset) }
        if options.json {
            try Output.json(Report(removed: removed.map(\.media.redactedURL), bytes: bytes))
        } else {
            for stored in removed {
                try Output.line("removed \(stored.media.redactedURL), \(ByteCount(bytes: stored.byteCount).text)")
            }
            if removed.count != 1 || all || selection != nil {
                let total = "\(removed.count.counted("resource")), \(ByteCount(bytes: bytes).text)"
                if failures.isEmpty || !removed.isEmpty { try Output.line("removed \(total)") }
            }
        }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }

    /// Removes the resources of a selection. Parts of a removed stream are not listed separately.
    private static func purge(
        _ selection: PurgeSelection, in cache: MediaCache
    ) async throws -> (removed: [StoredPresentation], failures: [any Error]) {
        let (removed, failures) = try await cache.purge(selection)
        return (StoredPresentation.presentations(in: removed), failures)
    }
}
#endif
