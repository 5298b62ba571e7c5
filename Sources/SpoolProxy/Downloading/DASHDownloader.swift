#if Proxy
import Foundation
public import Spool

/// Brings a DASH stream into a cache, so that it plays without its origin; or its beginning, so that it starts at once.
///
/// As ``HLSDownloader``, for an MPD (ISO/IEC 23009-1) that has an end: of segments by templates, by lists, or in one file.
///
/// ```swift
/// try await DASHDownloader(MediaSource(url: manifest), in: cache).run { progress in bar.progress = progress.fractionCompleted }
/// ```
public struct DASHDownloader: Sendable {
    private let download: StreamDownload
    private let seconds: Double?

    /// A download that has not begun.
    ///
    /// - Parameters:
    ///   - source: The MPD.
    ///   - cache: Where it is kept.
    ///   - firstSeconds: How much of it: of the first picture and the first sound, in the best quality of at most 1 Mbit/s,
    ///     else in the least, the segments that begin before then, at least the first one. Nil: all of the stream, in the best
    ///     quality of every picture, sound and text.
    ///   - concurrency: Files at once; at least 1.
    public init(_ source: MediaSource, in cache: MediaCache, firstSeconds: Double? = nil, concurrency: Int = 4) {
        download = StreamDownload(source, in: cache, concurrency: concurrency)
        seconds = firstSeconds
    }

    /// Brings what is not stored yet. Cancelled with its task, it keeps what has landed.
    ///
    /// - Parameter report: Called whenever something was stored, one call after another, from any thread.
    /// - Throws: `CacheError`, with the file's address: `.invalidArgument` for a live stream, and for one that names what
    ///   can't be asked for; `.malformedResponse` for what is no MPD; `.capacityExceeded` where the cache could not keep all
    ///   of it; else as `MediaReader.next()` does for the first file that can't be had. `CancellationError`.
    @discardableResult
    public func run(
        _ report: @escaping @Sendable (StreamProgress) -> Void = { _ in }
    ) async throws -> StreamProgress {
        let tally = DownloadTally(report)
        let url = download.source.url
        let media = download.media(at: url)
        let bytes = try await download.manifest(at: url, limit: DASHDocument.maximumBytes)
        let response = try await media.response().response
        let files: [StreamFile]
        do throws(ManifestError) {
            let found = try StreamDownload.address(of: media, response)
            files = try DASHDocument(parsing: bytes, at: found).presentation().files(seconds: seconds, at: found)
        } catch {
            // A live manifest that is kept would never change again.
            if error.code == .live { _ = try? await media.remove() }  // Where the disk refuses, it is evicted one day.
            let isManifest = error.code == .live || error.code == .address
            throw CacheError(
                isManifest ? .invalidArgument : .malformedResponse,
                isManifest ? "\(error)" : "\(MediaSource.displayAddress(of: url)) is no DASH stream: \(error)")
        }
        tally.add(Int64(bytes.count))
        try await download.bring(files, tally)
        return tally.progress
    }
}
#endif
