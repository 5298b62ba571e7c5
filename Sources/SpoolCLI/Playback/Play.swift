#if Tools
import AVFoundation
import ArgumentParser
import ByteRanges
import Foundation
import HTTPTypes
import Spool
import SpoolAVFoundation
import SpoolHTTP
import SpoolProxy

/// `spool play`: plays media through the cache with AVPlayer.
struct PlayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Play media through the cache with AVPlayer.",
        discussion: "Media that can't be cached, such as local files and playlists, is played directly.")

    @OptionGroup var options: CacheOptions
    @OptionGroup var fetching: FetchOptions
    @Argument(help: "The URL of the media, or a file.") var url: PlayableURL
    @Flag(help: "Play without video or sound, at the rate of --speed.") var headless = false
    @Option(
        help: ArgumentHelp(
            "When playback reaches AT, seek to TO, both in seconds; may be repeated.",
            valueName: "at:to"))
    var seek: [SeekArgument] = []
    @Option(help: ArgumentHelp("Stop at this position in the media, in seconds.", valueName: "t")) var until: Double?
    @Option(help: ArgumentHelp("Playback rate, from 0.01 to 100.", valueName: "n"))
    var speed = 1.0

    func validate() throws {
        guard (0.01...100).contains(speed) else { throw ValidationError("--speed must be a number from 0.01 to 100") }
        if let until, !(until >= 0 && until.isFinite) {
            throw ValidationError("--until must be 0 or more")
        }
    }

    func run() async throws {
        let plan = PlayPlan(seeks: seek, until: until, rate: speed)
        let source = try await fetching.source(url.url)
        let report = try await Play(
            options: options, capacity: fetching.size.capacity, source: source, upstream: fetching.upstream(),
            isHeadless: headless, plan: { _ in plan }
        ).run()
        if options.json { try Output.json(report) } else { try Output.line(report.text) }
    }
}

/// A playback session through a cache, from opening the cache to the report.
struct Play: Sendable {
    /// The cache directory.
    var options: CacheOptions
    /// The new capacity of the cache, or `nil` to leave it unchanged.
    var capacity: CapacityOptions.Capacity?
    /// The media to play.
    var source: MediaSource
    /// The transport, or `nil` for the platform's HTTP client.
    var upstream: (any Upstream)?
    /// Whether playback has no video or audio output.
    var isHeadless: Bool
    /// A function that returns the plan for a duration in seconds.
    var plan: @Sendable (Double?) -> PlayPlan
    /// A function that receives the events of the cache during playback.
    var onEvent: @Sendable (CacheEvent) -> Void = { _ in }
    /// A function that is called for each seek.
    var didSeek: @Sendable (SeekArgument) -> Void = { _ in }

    /// Plays the media, through the cache if possible.
    ///
    /// - Throws: An error from opening the cache, or from playback.
    func run() async throws -> PlaybackReport {
        if source.url.isFileURL, access(source.url.path, R_OK) != 0 {
            throw CommandFailure(.unplayable, "\(name) can't be played: \(systemCause(errno))")
        }
        if source.url.isFileURL, Self.isDirectory(source.url.path) {
            throw CommandFailure(.unplayable, "\(name) can't be played: it is a directory")
        }
        guard CachingURLAsset.canCache(source.url) else { return try await runWithoutCache() }
        var (report, media, warnings) = try await options.withCacheOrServer(
            capacity: capacity, upstream: upstream
        ) { cache in
            let warnings = Warnings(of: cache, onEvent: onEvent)
            let (outcome, asset) = try await play(in: cache)
            var report = PlaybackReport(outcome, of: source.url)
            report.add(requestsOf: asset)
            return (report, asset.media, warnings)
        }
        await warnings.end()
        // Playback has ended, so a report without the stored ranges is better than an error.
        let kept = try? await options.contents(of: media?.key)?.first
        report.add(media?.statistics ?? TransferStatistics(), kept: kept)
        return report
    }

    private func runWithoutCache() async throws -> PlaybackReport {
        do {
            return PlaybackReport(try await play(AVURLAsset(url: source.url), media: nil), of: source.url)
        } catch let failure as CommandFailure where failure.code == .unplayable {
            throw await originFailure() ?? failure
        }
    }

    /// Sends a request like that of the player, and returns its failure. The player itself does not report the cause.
    ///
    /// - Returns: `nil` if the request succeeds, or if the URL is not an HTTP URL.
    private func originFailure() async -> CommandFailure? {
        guard ["http", "https"].contains(source.url.scheme?.lowercased()) else { return nil }
        var cause: String
        do {
            let response = try await (upstream ?? HTTPUpstream.standard()).open(UpstreamRequest(url: source.url))
            guard response.head.status.code >= 400 else { return nil }
            cause = "the origin responded with status \(response.head.status.code)"
        } catch {
            cause = (error as? UpstreamError)?.message ?? error.localizedDescription
            if cause.hasPrefix(name + " ") { cause = String(cause.dropFirst(name.count + 1)) }
        }
        return CommandFailure(
            .unplayable,
            "\(name) can't be played: \(cause) (use “spool serve” to play stored streams without their origin)")
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private var name: String { source.url.isFileURL ? "“\(source.url.path)”" : source.redactedURL }

    /// Plays the media through the cache. Starts again, at most twice, if the origin sends another version while the
    /// player opens the media.
    private func play(in cache: MediaCache) async throws -> (PlaybackSession.Outcome, CachingURLAsset) {
        var attempts = 1
        while true {
            let asset = CachingURLAsset(caching: source, in: cache)
            do {
                return (try await play(asset, media: asset.media), asset)
            } catch let change as PlaybackSession.VersionChange {
                guard attempts < 3 else { throw change.failure }
                attempts += 1
            }
        }
    }

    @MainActor private func play(_ asset: AVURLAsset, media: MediaResource?) async throws -> PlaybackSession.Outcome {
        let session = PlaybackSession(asset, name: name, isHeadless: isHeadless, plan: plan, didSeek: didSeek)
        let line = LiveLine { columns in await Self.line(session, media, columns: columns) }
        do {
            let outcome = try await session.run()
            await line.end()
            return outcome
        } catch {
            await line.end()
            throw error
        }
    }

    /// Returns the progress line: the current time, the stored ranges, and the sources of the bytes.
    @MainActor private static func line(
        _ session: PlaybackSession, _ media: MediaResource?, columns: Int
    ) async -> String {
        let position = "\(ProgressLine.clock(session.time)) / \(session.duration.map(ProgressLine.clock) ?? "–:––")"
        guard let media else { return position }
        let counts = media.statistics
        let isKnown = media.knownStoredRanges.bounds != nil
        // If the length can't be read, playback fails as well, and reports the error.
        let length = isKnown ? try? await media.contentInformation().length : nil
        let numbers =
            "\(ByteCount(bytes: counts.bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: counts.bytesFromOrigin).text) from the origin"
        let line = RangeBar.line(
            before: position, media.knownStoredRanges, length: length ?? nil, after: numbers, columns: columns)
        return line.hasPrefix(position) ? line : String(position.prefix(max(0, columns - 1)))
    }
}

/// The result of playback: its end, the sources of the bytes, and the player's requests.
struct PlaybackReport: Encodable, Sendable {
    /// One loading request from the player.
    struct LoadingRequest: Encodable, Sendable {
        var kind: String
        var offset: Int64
        @EncodedAsNull var length: Int64?
        var toEnd: Bool
        var bytes: Int64
        var cancelled: Bool
    }

    var url: String
    @EncodedAsNull var duration: Double?
    var ended: Bool
    /// The time at which playback ended. It is not part of the JSON.
    private var time = 0.0
    var bytesFromCache: Int64 = 0
    var bytesFromOrigin: Int64 = 0
    var originRequests = 0
    var cachedRanges: [[Int64]] = []
    var loadingRequests: [LoadingRequest] = []

    private enum CodingKeys: String, CodingKey {
        case url, duration, ended, bytesFromCache, bytesFromOrigin, originRequests, cachedRanges, loadingRequests
    }

    init(_ outcome: PlaybackSession.Outcome, of url: URL) {
        self.url = url.isFileURL ? url.path : MediaSource(url: url).redactedURL
        _duration = EncodedAsNull(wrappedValue: outcome.duration)
        ended = outcome.ended
        time = outcome.time
    }

    /// Adds the statistics of the resource. Call this method after the cache has been closed, when no bytes are in
    /// transit.
    mutating func add(_ counts: TransferStatistics, kept: StoredResource?) {
        bytesFromCache = counts.bytesFromCache
        bytesFromOrigin = counts.bytesFromOrigin
        originRequests = counts.originRequests
        cachedRanges = kept?.storedRanges.map(\.pair) ?? []
    }

    /// Adds the player's requests. Apple's AVFoundation does not log them.
    mutating func add(requestsOf asset: AVURLAsset) {
        #if os(Linux)
        loadingRequests = asset.requestLog.map { request in
            LoadingRequest(
                kind: request.kind.rawValue, offset: request.offset, length: request.length, toEnd: request.toEnd,
                bytes: request.bytes, cancelled: request.isCancelled)
        }
        #endif
    }

    /// A one-line summary.
    var text: String {
        let length = duration.map { " of \(ProgressLine.clock($0))" } ?? ""
        let how = (ended ? "played to the end" : "stopped at \(ProgressLine.clock(time))") + length
        if bytesFromCache == 0, originRequests == 0 { return how + ", without the cache" }
        return how + ": "
            + "\(ByteCount(bytes: bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: bytesFromOrigin).text) from the origin in \(originRequests.counted("request"))"
    }
}
#endif
