#if Tools
import ArgumentParser
import ByteRanges
import Foundation
import HTTPRanges
import Spool
import SpoolProxy

/// `spool get`: fetches a resource, or a range of it, through the cache.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Fetch media, or a range of it, through the cache.",
        discussion: "Stored bytes are not fetched again, even after an interruption. Without --output, the bytes "
            + "are only stored in the cache. With --hls, all files of one variant of the stream are fetched, so that "
            + "“spool serve” can serve it without its origin.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URL of the media.") var url: MediaURL
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write, or - for standard output.", valueName: "file"), completion: .file())
    var output: String?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The bytes to fetch: 0-99, 100- or -500, as in HTTP.", valueName: "a-b"))
    var range: RangeArgument?

    @Flag(help: "Fetch a whole HLS stream for offline playback; give the URL of its playlist.") var hls = false
    @Option(
        help: ArgumentHelp(
            "Variant of the stream: highest, lowest, or the best up to a bandwidth (bits per second) or a resolution.",
            valueName: "highest|lowest|BANDWIDTH|WIDTHxHEIGHT"))
    var variant: VariantArgument?

    func validate() throws {
        if hls, output != nil || range != nil {
            throw ValidationError("--hls fetches a whole stream into the cache; remove --output and --range")
        }
        if variant != nil, !hls { throw ValidationError("--variant requires --hls") }
        if options.json, output == "-" { throw ValidationError("--json and --output - both need standard output") }
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
            // Stored bytes can be read while another process uses the directory, unless the capacity is to be changed.
            if fetching.size.capacity == nil, let stored = try await openStored(range, of: source, upstream) {
                cache = stored
            } else {
                do {
                    cache = try await options.openWhenFree(upstream)
                } catch let server as RunningServer {
                    cache = try await options.open(beside: server, fetching.size.capacity)
                    isServers = true
                }
            }
        }
        let (outcome, media, warnings) = try await options.use(cache, capacity: fetching.size.capacity) { cache in
            let warnings = Warnings(of: cache)
            let media = cache.media(for: source)
            let fetch = Fetch(media, range, in: cache, to: try await target())
            return (try await fetch.run(), media, warnings)
        }
        await warnings.end()
        try await report(outcome, of: source, counts: media.statistics, isServers: isServers)
    }

    /// Opens the cache read-only. Returns `nil` if the range is not completely stored.
    private func openStored(
        _ range: MediaRange, of source: MediaSource, _ upstream: any Upstream
    ) async throws -> MediaCache? {
        let cache: MediaCache
        do {
            cache = try await options.openNow(upstream) { $0.isReadOnly = true }
        } catch let error as CacheError where [.notStored, .storage].contains(error.code) {
            // The other process has not created its catalog yet, or is closing it.
            return nil
        }
        do {
            if let stored = try await cache.media(for: source).storedResource(), let length = stored.length {
                let start = range.start(in: length)
                let bytes = start..<max(start, min(length, range.end ?? length))
                if !bytes.isEmpty, stored.storedRanges.contains(bytes) { return cache }
            }
        } catch {
            await cache.close()
            throw error
        }
        await cache.close()
        return nil
    }

    private func getStream(_ source: MediaSource) async throws {
        let (outcome, warnings, cache) = try await options.withCacheOrServer(
            capacity: fetching.size.capacity, upstream: fetching.upstream()
        ) { cache in
            let warnings = Warnings(of: cache)
            let download = HLSDownloader(source, in: cache, variant: variant?.selection ?? .highest)
            return (try await StreamFetch(download, of: source).run(), warnings, cache)
        }
        await warnings.end()
        let report = StreamReport(outcome, of: source, counts: cache.statistics)
        if options.json { try Output.json(report) } else { try Output.line(report.text) }
    }

    /// Opens the target. This happens after the cache is opened, because checking the output path requires the cache
    /// directory.
    private func target() async throws -> OutputTarget {
        if let output, output != "-" { try options.rejectOutputInCache(output) }
        return try await OutputTarget(output)
    }

    /// Writes the report.
    ///
    /// - Parameter isServers: Whether a server stores the received bytes, and therefore records them with a delay.
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
        if output != "-" { try Output.line(report.text) } else if Output.isErrorTerminal { Output.remark(report.text) }
    }

    private func stored() async throws -> StoredResource? {
        do {
            return try await options.contents(of: url.key)?.first
        } catch is CacheError {
            // All bytes have been delivered, so a report without the stored ranges is better than an error.
            return nil
        }
    }
}

/// A byte range in the notation of HTTP: `0-99`, `100-` or `-500`.
struct RangeArgument: Hashable, Sendable, ExpressibleByArgument {
    var range: MediaRange

    /// Parses one range.
    ///
    /// - Returns: `nil` if it is malformed, ends before it starts, or has several parts (RFC 9110 §14.1.2).
    init?(argument: String) {
        guard !argument.contains(","), !argument.contains("="),
            let header = RangeHeader(parsing: "bytes=" + argument), let specifier = header.specifiers.first
        else { return nil }
        switch specifier {
        case .bounded(let first, let last):
            range = last < NumberLimits.byteOffset ? .bytes(first..<last + 1) : .from(first)
        case .from(let first): range = .from(first)
        case .suffix(let count): range = .suffix(count)
        }
    }
}

/// The variant of a stream to fetch: `highest`, `lowest`, a bit rate in bits per second, or `WIDTHxHEIGHT` in pixels.
struct VariantArgument: Hashable, Sendable, ExpressibleByArgument {
    var selection: HLSVariantSelection

    /// Parses a variant. The result is `nil` for other text, and for numbers that are not positive.
    init?(argument: String) {
        switch argument {
        case "highest": selection = .highest
        case "lowest": selection = .lowest
        default:
            let numbers = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int64($0) ?? 0 }
            guard numbers.allSatisfy({ $0 > 0 }) else { return nil }
            switch numbers.count {
            case 1: selection = .bandwidth(atMost: numbers[0])
            case 2: selection = .resolution(atMost: HLSResolution(width: numbers[0], height: numbers[1]))
            default: return nil
            }
        }
    }
}
#endif
