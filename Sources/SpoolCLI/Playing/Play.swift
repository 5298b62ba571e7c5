import AVFoundation
import ByteRanges
import Foundation
import Spool
import SpoolAVFoundation

/// One play through a cache, from the opening of the cache to the report.
struct Play: Sendable {
    /// Which cache.
    var options: CacheOptions
    /// The most that the cache may keep from now on.
    var capacity: RoomOptions.Capacity?
    /// The media to play.
    var source: MediaSource
    /// Where bytes come from; nil for the platform's HTTP client.
    var upstream: (any Upstream)?
    /// Whether without picture and sound.
    var isHeadless: Bool
    /// The plan for a duration in seconds.
    var plan: @Sendable (Double?) -> PlayPlan
    /// Told what happens in the cache meanwhile.
    var heard: @Sendable (CacheEvent) -> Void = { _ in }
    /// Told of each jump.
    var jumped: @Sendable (SeekArgument) -> Void = { _ in }

    /// Plays, through the cache where that is possible.
    ///
    /// - Throws: The error of opening the cache, or of the play.
    func run() async throws -> PlayReport {
        if source.url.isFileURL, access(source.url.path, R_OK) != 0 {
            throw CommandFailure(.unplayable, "\(name) can't be played: \(systemCause(errno))")
        }
        if source.url.isFileURL, Self.isDirectory(source.url.path) {
            throw CommandFailure(.unplayable, "\(name) can't be played: it is a directory")
        }
        guard CachingURLAsset.canCache(source.url) else {
            return PlayReport(try await play(AVURLAsset(url: source.url), media: nil), of: source.url)
        }
        var (report, media, warnings) = try await options.withCacheOrServer(
            capacity: capacity, upstream: upstream
        ) { cache in
            let warnings = Warnings(of: cache, heard: heard)
            let asset = CachingURLAsset(caching: source, in: cache)
            var report = PlayReport(try await play(asset, media: asset.media), of: source.url)
            report.add(requestsOf: asset)
            return (report, asset.media, warnings)
        }
        await warnings.end()
        // The play is over; a report without the stored ranges is better than none.
        let kept = try? await options.contents(of: media?.key)?.first
        report.add(media?.statistics ?? TransferStatistics(), kept: kept)
        return report
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private var name: String { source.url.isFileURL ? "“\(source.url.path)”" : source.displayAddress }

    @MainActor private func play(_ asset: AVURLAsset, media: MediaResource?) async throws -> PlaySession.Outcome {
        let session = PlaySession(asset, name: name, isHeadless: isHeadless, plan: plan, jumped: jumped)
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

    /// Where it plays, which parts of the file are there, and where bytes came from.
    @MainActor private static func line(_ session: PlaySession, _ media: MediaResource?, columns: Int) async -> String {
        let position = "\(ProgressLine.clock(session.time)) / \(session.duration.map(ProgressLine.clock) ?? "–:––")"
        guard let media else { return position }
        let counts = media.statistics
        // The line is drawn again soon, and the play itself reports the error.
        let length = media.landed.bounds == nil ? nil : try? await media.contentInformation().length
        let numbers =
            "\(ByteCount(bytes: counts.bytesFromCache).text) from the cache, "
            + "\(ByteCount(bytes: counts.bytesFromOrigin).text) from the origin"
        let line = RangeBar.line(
            before: position, media.landed, length: length ?? nil, after: numbers, columns: columns)
        return line.hasPrefix(position) ? line : String(position.prefix(max(0, columns - 1)))
    }
}
