import ArgumentParser
import Spool
import SpoolProxy

/// `spool gc`: make room now.
struct GarbageCollectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Evict what is least likely to be played again, until the capacity holds or so much is left.")

    struct Report: Encodable, Sendable {
        var evicted: Int64
        var stored: Int64
        @OrNull var capacity: Int64?
    }

    @OptionGroup var options: CacheOptions
    @Option(help: ArgumentHelp("How much may stay, such as 500MB.", valueName: "size")) var to: ByteCount?

    func run() async throws {
        let size = to?.bytes
        let done = try await options.withExistingCache { cache in
            let evicted = try await cache.evict(to: size)
            return Report(evicted: evicted, stored: cache.storedByteCount, capacity: cache.capacity)
        }
        if done == nil { options.tellOfNoCache() }
        let report = done ?? Report(evicted: 0, stored: 0, capacity: nil)
        if options.json { return try Output.json(report) }
        try Output.line(
            "evicted \(ByteCount(bytes: report.evicted).text), \(ByteCount(bytes: report.stored).text) are kept")
    }
}
