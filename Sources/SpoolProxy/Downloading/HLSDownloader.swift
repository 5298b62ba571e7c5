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
    public struct Progress: Sendable, Hashable {
        /// Segments that are stored whole, of ``segmentCount``.
        public internal(set) var storedSegments = 0
        /// Segments to store; 0 until the playlists have been read.
        public internal(set) var segmentCount = 0
        /// Bytes that are stored of all: playlists, keys, initialization sections and segments.
        public internal(set) var bytes: Int64 = 0

        /// From 0 to 1, by segments.
        public var fractionCompleted: Double {
            segmentCount > 0 ? Double(storedSegments) / Double(segmentCount) : 0
        }
    }

    /// What a download has brought.
    public struct Summary: Sendable, Hashable {
        /// The media playlist of the variant that was chosen; of a stream without variants, the stream's own.
        public internal(set) var variant: URL
        /// How much it is.
        public internal(set) var progress: Progress
    }

    private let presentation: PresentationSource
    private let cache: MediaCache
    private let selection: HLSVariantSelection
    private let seconds: Double?
    private let width: Int

    /// A download that has not begun.
    ///
    /// - Parameters:
    ///   - source: The playlist, of variants or of segments.
    ///   - variant: Which variant to bring, where there are several.
    ///   - firstSeconds: How much of it: the segments that begin before then, at least the first one, of the variant and of
    ///     the sound, the picture and the subtitles that a player takes where nobody chose. Nil: all of the stream, and all
    ///     sounds and subtitles that go with the variant.
    ///   - concurrency: Files at once; at least 1.
    public init(
        _ source: MediaSource, in cache: MediaCache, variant: HLSVariantSelection = .highest,
        firstSeconds: Double? = nil, concurrency: Int = 4
    ) {
        presentation = PresentationSource(source, now: cache.now)
        self.cache = cache
        selection = variant
        seconds = firstSeconds
        width = max(1, concurrency)
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
        tally.begin(segments: stream.downloads.count(where: \.isSegment))
        let brought = try await withThrowingTaskGroup(of: Brought.self) { group in
            var brought: [Brought] = []
            for (index, download) in stream.downloads.enumerated() {
                if index >= width, let done = try await group.next() { brought.append(done) }
                group.addTask { try await bring(download, tally) }
            }
            for try await done in group { brought.append(done) }
            return brought
        }
        try await checkAllIsKept(brought)
        return Summary(variant: stream.variant, progress: tally.progress)
    }

    // MARK: Playlists

    private struct Stream {
        var variant: URL
        var downloads: [HLSDownload] = []
    }

    private func playlists(_ tally: DownloadTally) async throws -> Stream {
        let url = presentation.source.url
        let (playlist, found) = try await playlist(at: url, tally)
        guard playlist.kind == .master else {
            return Stream(variant: url, downloads: try await downloads(playlist, found, media(at: url)))
        }
        let wanted = try Self.mapped { () throws(ManifestError) in
            try playlist.playlists(for: selection, at: found, isStart: seconds != nil)
        }
        var stream = Stream(variant: url)
        var parts = try Self.mapped { () throws(ManifestError) in try playlist.downloads(at: found) }
        for (index, address) in wanted.enumerated() {
            let part = try Self.url(of: address)
            if index == 0 { stream.variant = part }
            let (media, found) = try await self.playlist(at: part, importing: playlist.variables, tally)
            guard media.kind == .media else {
                throw CacheError(
                    .malformedResponse, "the playlist at \(address.nameForMessages) is of variants, not of segments")
            }
            parts += try await downloads(media, found, self.media(at: part))
        }
        var seen: Set<HLSDownload> = []
        stream.downloads = parts.filter { seen.insert($0).inserted }
        return stream
    }

    /// A playlist, and where it was found.
    private func playlist(
        at url: URL, importing variables: [String: String] = [:], _ tally: DownloadTally
    ) async throws -> (HLSPlaylist, OriginURL) {
        let media = media(at: url)
        let reader = media.preloadReader()
        var bytes: [UInt8] = []
        for try await chunk in reader {
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            // What is larger is no playlist: not all of a film is brought to find that out.
            if bytes.count > HLSPlaylist.maximumBytes { break }
        }
        let response = try await media.response().response
        do throws(ManifestError) {
            let found = try Self.address(of: media, response)
            let playlist = try HLSPlaylist(parsing: bytes, at: found, importing: variables)
            tally.add(Int64(bytes.count))
            return (playlist, found)
        } catch {
            throw CacheError(.malformedResponse, "\(MediaSource.displayAddress(of: url)) is no HLS stream: \(error)")
        }
    }

    /// Where what it names is relative to.
    private static func address(of media: MediaResource, _ response: StoredResponse) throws(ManifestError) -> OriginURL
    {
        do {
            let asked = try OriginURL(media.resolvedURL)
            // It is noted without its query, which is the asked one's unless it has moved.
            guard let final = try response.url.map({ (url) throws(AddressError) in try OriginURL(url) }),
                !final.isSameOrigin(as: asked) || final.path != asked.path
            else { return asked }
            return final
        } catch {
            throw ManifestError(.address, "\(error)")
        }
    }

    private func downloads(
        _ playlist: HLSPlaylist, _ found: OriginURL, _ media: MediaResource
    ) async throws -> [HLSDownload] {
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

    // MARK: Files

    private struct Brought: Sendable {
        var url: URL
        var range: Range<Int64>
    }

    private func bring(_ download: HLSDownload, _ tally: DownloadTally) async throws -> Brought {
        let media = media(at: try Self.url(of: download.url))
        let range = download.byteRange.map { MediaRange.bytes($0) } ?? .all
        // A slice tells that the bytes are there, and proven, without reading them.
        let reader = media.preloadReader(range, chunkSize: 1 << 20, handsOutSlices: true)
        let start = download.byteRange?.lowerBound ?? 0
        var end = start
        do {
            while let chunk = try await reader.next() {
                end = chunk.range.upperBound
                tally.add(Int64(chunk.count))
            }
        } catch let error as CacheError where error.code == .unsatisfiableRange && download.byteRange == nil {
            // An empty file is one that is stored whole.
            guard try await media.contentInformation().length == 0 else { throw error }
        }
        if let wanted = download.byteRange, end < wanted.upperBound {
            throw CacheError(
                .malformedResponse,
                "\(download.url.nameForMessages) ends at byte \(end), and a playlist names bytes up to \(wanted.upperBound) of it",
                key: media.key, range: wanted)
        }
        if download.isSegment { tally.stored() }
        return Brought(url: media.source.url, range: start..<end)
    }

    /// A cache that is too small, or whose disk is full, hands bytes on without keeping them.
    private func checkAllIsKept(_ brought: [Brought]) async throws {
        // The process that has the directory keeps them, and may not have written them down yet.
        if cache.isReadOnly { return }
        for file in brought where !file.range.isEmpty {
            let media = media(at: file.url)
            guard try await !media.storedRanges.contains(file.range) else { continue }
            throw CacheError(
                .capacityExceeded,
                "\(media.source.displayAddress) could not be kept with the rest of its stream: the cache has no room for all of it",
                key: media.key, range: file.range)
        }
    }

    private func media(at url: URL) -> MediaResource {
        var source = presentation.part(at: url)
        let whole = presentation.source
        if url != whole.url { source.presentation = cache.key(for: whole) }
        return cache.media(for: source)
    }

    private static func url(of address: OriginURL) throws -> URL {
        guard let url = address.url else {
            throw CacheError(.invalidArgument, "\(address.nameForMessages) can't be asked for")
        }
        return url
    }
}
#endif
