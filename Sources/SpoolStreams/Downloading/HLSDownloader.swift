public import Foundation
public import Spool

/// A download of an HLS stream into a cache: the whole stream for offline playback, or its first seconds for a fast
/// start.
///
/// A download includes the playlists of one variant and of its audio and subtitles, with all files to which these
/// playlists refer. Each byte is requested once, and stored bytes are not requested again. Therefore, a cancelled
/// download resumes at the next run. Playback has priority over downloads.
///
/// ```swift
/// let limit = HLSResolution(width: 1280, height: 720)
/// let download = HLSDownloader(MediaSource(url: playlist), in: cache, variant: .resolution(atMost: limit))
/// try await download.run { progress in bar.progress = progress.fractionCompleted }
/// ```
///
/// The header fields of the source, or of its resolver, are sent only to the source's origin, even if a playlist refers
/// to other origins. To play the stream from the cache, use a `ProxyServer` from the module `SpoolProxy`.
public struct HLSDownloader: Sendable {
    /// The progress of a download.
    public typealias Progress = StreamProgress

    /// The result of a download.
    public struct Summary: Sendable, Hashable {
        /// The URL of the chosen variant's media playlist, or of the playlist if the stream has no variants.
        public internal(set) var variant: URL
        /// The final progress.
        public internal(set) var progress: Progress
    }

    private var download: StreamDownload
    private let selection: HLSVariantSelection
    private let seconds: Double?
    /// Whether to download the keys of encrypted streams.
    package var includesKeys = true
    /// A function that throws an error if the URL of a file may not be requested. The default allows all URLs.
    package var check: @Sendable (OriginURL) throws -> Void {
        get { download.check }
        set { download.check = newValue }
    }

    /// Creates a download. ``run(_:)`` starts it.
    ///
    /// - Parameters:
    ///   - source: The source of the master playlist or media playlist.
    ///   - cache: The cache that stores the stream.
    ///   - variant: The choice of the variant, if there are several. The default is the variant with the highest
    ///     bandwidth.
    ///   - firstSeconds: The length of the start to download, in seconds. The start contains at least one segment of
    ///     the variant and of its default audio, video and subtitles. The default, `nil`, downloads the whole stream
    ///     with all audio and subtitles of the variant.
    ///   - maximumConcurrentDownloads: The maximum number of files to download at the same time, at least 1. The
    ///     default is 4.
    public init(
        _ source: MediaSource, in cache: MediaCache, variant: HLSVariantSelection = .highest,
        firstSeconds: Double? = nil, maximumConcurrentDownloads: Int = 4
    ) {
        download = StreamDownload(
            source, in: cache, maximumConcurrentDownloads: maximumConcurrentDownloads, isDownload: firstSeconds == nil)
        selection = variant
        seconds = firstSeconds
    }

    /// Downloads the bytes that are not stored yet. If the task is cancelled, the received bytes stay stored. If the
    /// origin does not have a file, such as a subtitle file, the other files are downloaded before the error is thrown.
    /// The same applies if the origin sends only empty responses for a segment.
    ///
    /// - Parameter report: A function that is called after each change, one call at a time, from any thread.
    /// - Throws: `CancellationError`, or `CacheError` with the URL of the file and one of these codes:
    ///   - `.invalidArgument` if the stream is live, or contains a URL that cannot be requested
    ///   - `.malformedResponse` if the document is not a playlist
    ///   - `.capacityExceeded` if the whole stream does not fit in the cache
    ///   - the code of the cause, such as `.storage`, or `.incomplete`, if the cache could not store a file
    ///   - the codes of `MediaReader.next()` for a file that cannot be read
    @discardableResult
    public func run(_ report: @escaping @Sendable (Progress) -> Void = { _ in }) async throws -> Summary {
        let tally = DownloadTally(report)
        let stream = try await playlists(tally)
        try await download.run(stream.downloads, tally)
        if let failure = stream.failure { throw failure }
        return Summary(variant: stream.variant, progress: tally.progress)
    }

    // MARK: Playlists

    private struct Stream {
        var variant: URL
        var downloads: [StreamFile] = []
        /// The error of a rendition whose playlist can't be used. The other files are still downloaded.
        var failure: CacheError?
    }

    private func playlists(_ tally: DownloadTally) async throws -> Stream {
        let url = download.source.url
        let (playlist, found) = try await playlist(at: url, tally)
        guard playlist.kind == .master else {
            return Stream(variant: url, downloads: try await downloads(playlist, found, download.media(at: url)))
        }
        let wanted = try Self.mapped { () throws(ManifestError) in
            try playlist.playlists(for: selection, at: found, isStart: seconds != nil)
        }
        var stream = Stream(variant: url)
        var parts = try Self.mapped { () throws(ManifestError) in try playlist.downloads(at: found) }
        for (index, address) in wanted.enumerated() {
            let part = try StreamDownload.url(of: address)
            if index == 0 { stream.variant = part }
            do {
                let (media, found) = try await self.playlist(at: part, importing: playlist.variables, tally)
                guard media.kind == .media else {
                    throw CacheError(
                        .malformedResponse,
                        "the playlist at \(address.nameForMessages) contains variants, not segments")
                }
                parts += try await downloads(media, found, download.media(at: part))
            } catch let error as CacheError where index > 0 && Self.isUnusable(error) {
                stream.failure = stream.failure ?? error
            }
        }
        var seen: Set<StreamFile> = []
        stream.downloads = parts.filter { seen.insert($0).inserted }
        return stream
    }

    /// Returns whether an error concerns one playlist, so that others may still be usable.
    private static func isUnusable(_ error: CacheError) -> Bool {
        error.code == .originErrorStatus || error.code == .malformedResponse
    }

    /// Reads a playlist, and returns it with its URL.
    private func playlist(
        at url: URL, importing variables: [String: String] = [:], _ tally: DownloadTally
    ) async throws -> (HLSPlaylist, OriginURL) {
        let media = download.media(at: url)
        let bytes = try await download.manifest(at: url, limit: HLSPlaylist.maximumBytes)
        let response = try await media.response().response
        do throws(ManifestError) {
            let found = try StreamDownload.address(of: media, response)
            var playlist = try HLSPlaylist(parsing: bytes, at: found, importing: variables)
            if !includesKeys { playlist.removeKeys() }
            tally.add(Int64(bytes.count))
            return (playlist, found)
        } catch {
            throw CacheError(
                .malformedResponse, "\(MediaSource.redactedURL(of: url)) is not an HLS stream: \(error)")
        }
    }

    private func downloads(
        _ playlist: HLSPlaylist, _ found: OriginURL, _ media: MediaResource
    ) async throws -> [StreamFile] {
        do {
            return try playlist.downloads(at: found, seconds: seconds)
        } catch  where error.code == .live {
            // A stored live playlist would never be updated. If it cannot be removed here, it is evicted later.
            _ = try? await media.remove()
            throw CacheError(.invalidArgument, "\(error)")
        } catch {
            throw CacheError(.invalidArgument, "\(error)")
        }
    }

    private static func mapped<R>(_ body: () throws(ManifestError) -> R) throws -> R {
        do {
            return try body()
        } catch {
            throw CacheError(.invalidArgument, "\(error)")
        }
    }
}
