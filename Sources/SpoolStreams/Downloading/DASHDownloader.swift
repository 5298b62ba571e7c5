import Foundation
public import Spool

/// A download of a DASH stream into a cache: the whole stream for offline playback, or its first seconds for a fast
/// start.
///
/// It works like ``HLSDownloader``, but takes the MPD (ISO/IEC 23009-1) of an on-demand stream. Live streams are not
/// supported. Templates, lists or a single file may describe the segments.
///
/// ```swift
/// let download = DASHDownloader(MediaSource(url: manifest), in: cache)
/// try await download.run { progress in bar.progress = progress.fractionCompleted }
/// ```
public struct DASHDownloader: Sendable {
    private var download: StreamDownload
    private let seconds: Double?
    /// A function that throws an error if the URL of a file may not be requested. The default allows all URLs.
    package var check: @Sendable (OriginURL) throws -> Void {
        get { download.check }
        set { download.check = newValue }
    }

    /// Creates a download. ``run(_:)`` starts it.
    ///
    /// - Parameters:
    ///   - source: The source of the MPD.
    ///   - cache: The cache that stores the stream.
    ///   - firstSeconds: The length of the start to download, in seconds. The start contains the first video and the
    ///     first audio, with at least one segment of each. Their quality is the best one up to 1 Mbit/s, or the lowest
    ///     one if every quality exceeds that bit rate. The default, `nil`, downloads the whole stream, in the best
    ///     quality of all video, audio and text.
    ///   - maximumConcurrentDownloads: The maximum number of files to download at the same time, at least 1. The
    ///     default is 4.
    public init(
        _ source: MediaSource, in cache: MediaCache, firstSeconds: Double? = nil, maximumConcurrentDownloads: Int = 4
    ) {
        download = StreamDownload(source, in: cache, maximumConcurrentDownloads: maximumConcurrentDownloads)
        seconds = firstSeconds
    }

    /// Downloads the bytes that are not stored yet. If the task is cancelled, the received bytes stay stored.
    ///
    /// - Parameter report: A function that is called after each change, one call at a time, from any thread.
    /// - Throws: `CancellationError`, or `CacheError` with the URL of the file and one of these codes:
    ///   - `.invalidArgument` if the stream is live, or contains a URL that cannot be requested
    ///   - `.malformedResponse` if the document is not an MPD
    ///   - `.capacityExceeded` if the whole stream does not fit in the cache
    ///   - the code of the cause, such as `.storage`, or `.incomplete`, if the cache could not store a file
    ///   - the codes of `MediaReader.next()` for a file that cannot be read
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
            // A stored live manifest would never be updated. If it cannot be removed here, it is evicted later.
            if error.code == .live { _ = try? await media.remove() }
            let isManifest = error.code == .live || error.code == .address
            throw CacheError(
                isManifest ? .invalidArgument : .malformedResponse,
                isManifest ? "\(error)" : "\(MediaSource.redactedURL(of: url)) is not a DASH stream: \(error)")
        }
        tally.add(Int64(bytes.count))
        try await download.run(files, tally)
        return tally.progress
    }
}
