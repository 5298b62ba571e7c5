import ArgumentParser
import Foundation
import Spool
import SpoolProxy

/// `spool get`: fetch a media file, or part of it, through the cache.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Fetch a media file, or part of it, through the cache.",
        discussion: "What the cache has is not fetched again, also after an interruption. Without --output the bytes "
            + "are fetched into the cache only. With --hls, all "
            + "that the stream's playlists name is fetched, and “spool serve” plays it without its origin.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URL of the media.") var url: MediaURL
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write, or - for standard output.", valueName: "file"), completion: .file())
    var output: String?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The bytes to get: 0-99, 100- or -500, as in HTTP.", valueName: "a-b"))
    var range: RangeArgument?

    @Flag(help: "Fetch a whole HLS stream, for offline play: the URL is its playlist.") var hls = false
    @Option(
        help: ArgumentHelp(
            "The variant of the stream: highest, lowest, or the best of at most so many bits a second, or so many pixels.",
            valueName: "highest|lowest|BANDWIDTH|WIDTHxHEIGHT"))
    var variant: VariantArgument?

    func validate() throws {
        if hls, output != nil || range != nil {
            throw ValidationError("--hls fetches into the cache, and all of a stream: give no --output and no --range")
        }
        if variant != nil, !hls { throw ValidationError("--variant is for --hls") }
        if options.json, output == "-" { throw ValidationError("--json and --output - both want standard output") }
        if output?.isEmpty ?? false {
            throw ValidationError("--output is empty: give a file, or - for standard output")
        }
    }

    func run() async throws {
        let source = try await fetching.source(url.url)
        if hls { return try await getStream(source) }
        let range = range?.range ?? .all
        let upstream = fetching.upstream()
        let cache: MediaCache
        var isServers = false
        do {
            cache = try await options.openNow(upstream)
        } catch let error as CacheError where error.code == .directoryInUse {
            // What is stored can be read beside the process that has it, unless there is something to be changed.
            if fetching.room.capacity == nil,
                let beside = try await FetchBeside(
                    range, of: url.key, in: options.directory, encryptionKey: options.keys.key())
            {
                let outcome = try await beside.run(to: try await target())
                var counts = TransferStatistics()
                counts.bytesFromCache = outcome.range.upperBound - outcome.range.lowerBound
                return try await report(outcome, of: source, counts: counts)
            }
            do {
                cache = try await options.openWhenFree(upstream)
            } catch let server as HoldingServer {
                cache = try await options.open(beside: server)
                isServers = true
            }
        }
        let (outcome, media, warnings) = try await options.use(cache, capacity: fetching.room.capacity) { cache in
            let warnings = Warnings(of: cache)
            let media = cache.media(for: source)
            let fetch = Fetch(media, range, to: try await target())
            return (try await fetch.run(), media, warnings)
        }
        await warnings.end()
        try await report(outcome, of: source, counts: media.statistics, isServers: isServers)
    }

    private func getStream(_ source: MediaSource) async throws {
        let (outcome, warnings, cache) = try await options.withCacheOrServer(
            capacity: fetching.room.capacity, upstream: fetching.upstream()
        ) { cache in
            let warnings = Warnings(of: cache)
            let download = HLSDownloader(source, in: cache, variant: variant?.selection ?? .highest)
            return (try await StreamFetch(download, of: source).run(), warnings, cache)
        }
        await warnings.end()
        let report = StreamReport(outcome, of: source, counts: cache.statistics)
        if options.json { try Output.json(report) } else { try Output.line(report.text) }
    }

    /// Opened when there is a cache: only then is it known what lies in its directory.
    private func target() async throws -> OutputTarget {
        if let output, output != "-" { try options.refuseWithinCache(output) }
        return try await OutputTarget(output)
    }

    /// - Parameter isServers: Whether a server keeps what came, and writes it down in its own time.
    private func report(
        _ outcome: Fetch.Outcome, of source: MediaSource, counts: TransferStatistics, isServers: Bool = false
    ) async throws {
        var kept = try await stored()
        var looks = isServers ? 20 : 0
        while looks > 0, kept?.storedRanges.contains(outcome.range) != true {
            try await Task.sleep(for: .milliseconds(25))
            kept = try await stored()
            looks -= 1
        }
        let report = FetchReport(outcome, of: source, counts: counts, kept: kept)
        if options.json { return try Output.json(report) }
        if output != "-" { try Output.line(report.text) } else if Output.isWatched { Output.remark(report.text) }
    }

    private func stored() async throws -> StoredResource? {
        do {
            return try await options.contents(of: url.key)?.first
        } catch is CacheError {
            // All bytes are delivered; a report without the stored ranges is better than none.
            return nil
        }
    }
}
