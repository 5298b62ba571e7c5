#if Tools
import ArgumentParser
import Spool
import SpoolProxy

/// `spool pin`: protects a resource from eviction.
struct PinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin", abstract: "Protect a resource from eviction.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL

    func run() async throws { try await options.setPinned(true, url) }
}

/// `spool unpin`: allows the eviction of a resource again.
struct UnpinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin", abstract: "Allow the eviction of a pinned resource again.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL

    func run() async throws { try await options.setPinned(false, url) }
}

extension CacheOptions {
    func setPinned(_ isPinned: Bool, _ media: MediaURL) async throws {
        let found = try await withExistingCache { cache in
            guard try await cache.media(for: media.url).storedResource() != nil else { throw media.notStored }
            if isPinned { try await cache.pin(media.key) } else { try await cache.unpin(media.key) }
            return try await StoredPresentation.stored(media.key, in: cache)
        }
        guard case let kept?? = found else { throw media.notStored }
        if json { return try Output.json(MediaReport(kept.media)) }
        let bytes = ByteCount(bytes: kept.byteCount).text
        try Output.line("\(isPinned ? "pinned" : "unpinned") \(kept.media.redactedURL), \(bytes) stored")
    }
}

/// `spool gc`: evicts resources now.
struct GarbageCollectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract:
            "Evict the media that is least likely to be played again, until the cache fits its capacity or the given size."
    )

    struct Report: Encodable, Sendable {
        var evicted: Int64
        var storedBytes: Int64
        @EncodedAsNull var capacity: Int64?
    }

    @OptionGroup var options: CacheOptions
    @Option(help: ArgumentHelp("Maximum size after eviction, such as 500MB.", valueName: "size")) var to: ByteCount?

    func run() async throws {
        let size = to?.bytes
        let done = try await options.withExistingCache { cache in
            let evicted = try await cache.evict(to: size)
            return Report(evicted: evicted, storedBytes: cache.storedByteCount, capacity: cache.capacity)
        }
        if done == nil { options.reportMissingCache() }
        let report = done ?? Report(evicted: 0, storedBytes: 0, capacity: nil)
        if options.json { return try Output.json(report) }
        try Output.line(
            "evicted \(ByteCount(bytes: report.evicted).text), \(ByteCount(bytes: report.storedBytes).text) remain stored"
        )
    }
}
#endif
