import ArgumentParser
import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// `spool rm`: removes resources from the cache, including pinned ones.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm", abstract: "Remove resources from the cache, pinned or not.",
        discussion: "If some resources can't be removed, the others are, and the exit status is 1.")

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
        let outcome = try await options.withExistingCache { cache in
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
            if removed.count != 1 || all {
                let total = "\(removed.count.counted("resource")), \(ByteCount(bytes: bytes).text)"
                if failures.isEmpty || !removed.isEmpty { try Output.line("removed \(total)") }
            }
        }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }
}
