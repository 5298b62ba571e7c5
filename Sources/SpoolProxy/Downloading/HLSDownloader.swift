#if Proxy
public import Foundation
public import Spool

/// Brings an HLS stream into a cache, so that it plays without its origin; or its beginning, so that it starts at once.
///
/// That is: the playlists, of one variant and of the sounds and subtitles that go with it, and all that they name. Each byte
/// is asked for once; what is stored already is not asked for again, so a download that was ended goes on where it stopped.
/// Playback goes first: this is for bytes that nobody waits for.
///
/// ```swift
/// let download = HLSDownloader(MediaSource(url: playlist), in: cache, variant: .resolution(atMost: .init(width: 1280, height: 720)))
/// try await download.run { progress in bar.progress = progress.fractionCompleted }
/// ```
///
/// The source's header fields, or its resolver's, go to their own origin alone, whatever else a playlist names. The stream
/// plays from the cache through a ``ProxyServer`` over it.
public struct HLSDownloader: Sendable {
    /// How far a download has come.
    public typealias Progress = StreamProgress

    /// What a download has brought.
    public struct Summary: Sendable, Hashable {
        /// The media playlist of the variant that was chosen; of a stream without variants, the stream's own.
        public internal(set) var variant: URL
        /// How much it is.
        public internal(set) var progress: Progress
    }

    private let download: StreamDownload
    private let selection: HLSVariantSelection
    private let seconds: Double?
    /// Whether keys of encrypted streams are brought, too.
    var bringsKeys = true

    /// A download that has not begun.
    ///
    /// - Parameters:
    ///   - source: The playlist, of variants or of segments.
    ///   - cache: Where it is kept.
    ///   - variant: Which variant to bring, where there are several.
    ///   - firstSeconds: How much of it: the segments that begin before then, at least the first one, of the variant and of
    ///     the sound, the picture and the subtitles that a player takes where nobody chose. Nil: all of the stream, and all
    ///     sounds and subtitles that go with the variant.
    ///   - concurrency: Files at once; at least 1.
    public init(
        _ source: MediaSource, in cache: MediaCache, variant: HLSVariantSelection = .highest,
        firstSeconds: Double? = nil, concurrency: Int = 4
    ) {
        download = StreamDownload(source, in: cache, concurrency: concurrency)
        selection = variant
        seconds = firstSeconds
    }

    /// Brings what is not stored yet. Cancelled with its task, it keeps what has landed.
    ///
    /// - Parameter report: Called whenever something was stored, one call after another, from any thread.
    /// - Throws: `CacheError`, with the file's address: `.invalidArgument` for a live stream, which has no end to bring it up
    ///   to, and for one that names what can't be asked for; `.malformedResponse` for what is no playlist;
    ///   `.capacityExceeded` where the cache could not keep all of it; else as `MediaReader.next()` does for the first file
    ///   that can't be had. `CancellationError`.
    @discardableResult
    public func run(_ report: @escaping @Sendable (Progress) -> Void = { _ in }) async throws -> Summary {
        let tally = DownloadTally(report)
        let stream = try await playlists(tally)
        try await download.bring(stream.downloads, tally)
        return Summary(variant: stream.variant, progress: tally.progress)
    }

    // MARK: Playlists

    private struct Stream {
        var variant: URL
        var downloads: [StreamFile] = []
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
            let (media, found) = try await self.playlist(at: part, importing: playlist.variables, tally)
            guard media.kind == .media else {
                throw CacheError(
                    .malformedResponse, "the playlist at \(address.nameForMessages) is of variants, not of segments")
            }
            parts += try await downloads(media, found, download.media(at: part))
        }
        var seen: Set<StreamFile> = []
        stream.downloads = parts.filter { seen.insert($0).inserted }
        return stream
    }

    /// A playlist, and where it was found.
    private func playlist(
        at url: URL, importing variables: [String: String] = [:], _ tally: DownloadTally
    ) async throws -> (HLSPlaylist, OriginURL) {
        let media = download.media(at: url)
        let bytes = try await download.manifest(at: url, limit: HLSPlaylist.maximumBytes)
        let response = try await media.response().response
        do throws(ManifestError) {
            let found = try StreamDownload.address(of: media, response)
            var playlist = try HLSPlaylist(parsing: bytes, at: found, importing: variables)
            if !bringsKeys { playlist.removeKeys() }
            tally.add(Int64(bytes.count))
            return (playlist, found)
        } catch {
            throw CacheError(.malformedResponse, "\(MediaSource.displayAddress(of: url)) is no HLS stream: \(error)")
        }
    }

    private func downloads(
        _ playlist: HLSPlaylist, _ found: OriginURL, _ media: MediaResource
    ) async throws -> [StreamFile] {
        do {
            return try playlist.downloads(at: found, seconds: seconds)
        } catch  where error.code == .live {
            // A live playlist that is kept would never change again. Where the disk refuses, it is evicted one day.
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
#endif
