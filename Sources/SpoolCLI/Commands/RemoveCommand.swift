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
        var cancelledPreloads: [String]
    }

    private struct Outcome: Sendable {
        var removed: [StoredPresentation] = []
        var failures: [any Error] = []
        /// The sources of the preloads that were cancelled in the server that has the directory open.
        var cancelled: [MediaSource] = []
    }

    @OptionGroup var options: CacheOptions
    @Flag(help: "Remove everything.") var all = false
    @Option(
        help: ArgumentHelp(
            "Remove all media whose URL starts with this one, such as https://example.com/show/.", valueName: "url"))
    var prefix: String?
    @Option(
        help: ArgumentHelp(
            "Remove all media with this tag in the origin's Surrogate-Key or Cache-Tag field.", valueName: "tag"))
    var tag: String?
    @Argument(help: "The URLs of the media.") var urls: [MediaURL] = []

    func validate() throws {
        guard [all, !urls.isEmpty, prefix != nil, tag != nil].count(where: { $0 }) == 1 else {
            throw ValidationError("give either URLs or one of --all, --prefix and --tag")
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
            var outcome = Outcome()
            // A preload would store a removed resource again.
            if let preloads = OperatorPreloads.ofServer {
                if all { outcome.cancelled = await preloads.cancelAll() }
                for url in urls {
                    outcome.cancelled += try await preloads.cancel(beforeRemoving: url.key, from: cache)
                }
            }
            var found: [StoredPresentation] = []
            if all { found = StoredPresentation.presentations(in: try await cache.storedResources()) }
            var wanted = Set<CacheKey>()
            for url in urls where wanted.insert(url.key).inserted {
                if let media = try await StoredPresentation.stored(url.key, in: cache) { found.append(media) }
            }
            let stored = Set(found.flatMap { [$0.media] + $0.parts }.map(\.key))
            let cancelled = Set(outcome.cancelled.map { cache.key(for: $0) }).subtracting(stored)
            // The first bytes of a preload may not be recorded yet.
            for key in cancelled where all || wanted.contains(key) { try await cache.remove(key) }
            outcome.failures = urls.filter { !stored.contains($0.key) && !cancelled.contains($0.key) }.map(\.notStored)
            // Parts of a stream can also be removed by their own URLs.
            for stored in found {
                do {
                    try await cache.remove(stored.media.key)
                    outcome.removed.append(stored)
                } catch let error as CacheError {
                    outcome.failures.append(error)
                }
            }
            return outcome
        }
        try report(outcome ?? Outcome(failures: urls.map(\.notStored)), isSelection: all || selection != nil)
    }

    private func report(_ outcome: Outcome, isSelection: Bool) throws {
        let (removed, failures) = (outcome.removed, outcome.failures)
        let cancelled = outcome.cancelled.map(\.redactedURL).sorted()
        let bytes = removed.reduce(0) { min($0 + $1.byteCount, NumberLimits.byteOffset) }
        if options.json {
            let urls = removed.map(\.media.redactedURL)
            try Output.json(Report(removed: urls, bytes: bytes, cancelledPreloads: cancelled))
        } else {
            for url in cancelled { try Output.line("cancelled the preload of \(url)") }
            for stored in removed {
                try Output.line("removed \(stored.media.redactedURL), \(ByteCount(bytes: stored.byteCount).text)")
            }
            if removed.count != 1 || isSelection {
                let total = "\(removed.count.counted("resource")), \(ByteCount(bytes: bytes).text)"
                if failures.isEmpty || !removed.isEmpty { try Output.line("removed \(total)") }
            }
        }
        if !failures.isEmpty { throw CommandFailures(all: failures) }
    }

    /// Removes the resources of a selection. Parts of a removed stream are not listed separately.
    private static func purge(
        _ selection: PurgeSelection, in cache: MediaCache
    ) async throws -> Outcome {
        guard let preloads = OperatorPreloads.ofServer else {
            let (removed, failures) = try await cache.purge(selection)
            return Outcome(removed: StoredPresentation.presentations(in: removed), failures: failures)
        }
        let (removed, failures, cancelled) = try await preloads.purge(selection, from: cache)
        return Outcome(
            removed: StoredPresentation.presentations(in: removed), failures: failures, cancelled: cancelled)
    }
}
#endif
