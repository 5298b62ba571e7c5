public import Foundation
import HTTPRanges
public import Spool

/// An HLS variant with at least one stored segment.
///
/// A player measures how fast it receives bytes, and stored bytes are received quickly. Therefore, the player may
/// switch from a stored variant to a different one. To prevent this, limit the bit rate:
/// `item.preferredPeakBitRate = Double(variant.bitRate)`.
public struct HLSStoredVariant: Sendable, Hashable {
    /// The URL of the variant's media playlist, or the URL of the playlist if the stream has no variants.
    public internal(set) var url: URL
    /// The peak bit rate, in bits per second, or `nil` for a stream without variants.
    public internal(set) var bitRate: Int64?
    /// The resolution of the video, or `nil` if the stream does not specify it.
    public internal(set) var resolution: HLSResolution?
    /// The codecs, in the format of RFC 6381, or `nil` if the stream does not specify them.
    public internal(set) var codecs: String?
    /// The number of segments.
    public internal(set) var segmentCount: Int
    /// The number of completely stored segments.
    public internal(set) var storedSegmentCount: Int
    /// Whether all files of the media playlist are stored. Audio and subtitles in separate playlists are not counted.
    public internal(set) var isComplete: Bool
}

extension HLSDownloader {
    /// Returns the variants of a stream that have stored segments, in the order of the master playlist.
    ///
    /// This method does not send requests to the origin, even if stored playlists are stale. It does not run on the
    /// caller's actor.
    ///
    /// ```swift
    /// let stored = try await HLSDownloader.storedVariants(of: source, in: cache)
    /// item.preferredPeakBitRate = Double(stored.first { $0.isComplete }?.bitRate ?? 0)
    /// ```
    ///
    /// - Throws: `CacheError` with code `.storage` or `.closed`, or with code `.malformedResponse` if the stored
    ///   resource is not a playlist.
    @concurrent public static func storedVariants(
        of source: MediaSource, in cache: MediaCache
    ) async throws -> [HLSStoredVariant] {
        let download = StreamDownload(source, in: cache, maximumConcurrentDownloads: 1)
        guard let (playlist, found) = try await stored(source.url, download) else { return [] }
        guard playlist.kind == .master else {
            return try await [variant(source.url, playlist, found, download)].compactMap { $0 }
        }
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        var variants: [HLSStoredVariant] = []
        for listed in playlist.variants {
            // A playlist that cannot be requested is not stored.
            guard let url = rewriter.url(of: listed.uri)?.url,
                let (media, found) = try await stored(url, importing: playlist.variables, download),
                var variant = try await variant(url, media, found, download)
            else { continue }
            (variant.bitRate, variant.resolution, variant.codecs) = (listed.bandwidth, listed.resolution, listed.codecs)
            variants.append(variant)
        }
        return variants
    }

    /// Returns a playlist with its URL, or `nil` if the playlist is not stored completely.
    private static func stored(
        _ url: URL, importing variables: [String: String] = [:], _ download: StreamDownload
    ) async throws -> (HLSPlaylist, OriginURL)? {
        let media = download.media(at: url)
        guard let record = try await media.storedResource(), record.isComplete, let length = record.length,
            length <= HLSPlaylist.maximumBytes
        else { return nil }
        let reader = media.storedReader()
        do {
            let response = try await reader.response().response
            var bytes: [UInt8] = []
            for try await chunk in reader { chunk.withUnsafeBytes { bytes.append(contentsOf: $0) } }
            let found = try StreamDownload.address(of: media, response)
            return (try HLSPlaylist(parsing: bytes, at: found, importing: variables), found)
        } catch let error as CacheError where error.code == .notStored {
            return nil  // The playlist was evicted in the meantime.
        } catch let error as ManifestError {
            throw CacheError(
                .malformedResponse, "\(MediaSource.redactedURL(of: url)) is not an HLS stream: \(error)")
        }
    }

    /// Returns a variant, or `nil` if none of its segments is stored.
    private static func variant(
        _ url: URL, _ playlist: HLSPlaylist, _ found: OriginURL, _ download: StreamDownload
    ) async throws -> HLSStoredVariant? {
        // A live playlist does not list all segments.
        guard let files = try? playlist.downloads(at: found) else { return nil }
        var variant = HLSStoredVariant(url: url, segmentCount: 0, storedSegmentCount: 0, isComplete: true)
        for file in files {
            var isStored = false
            if let url = file.url.url, let record = try await download.media(at: url).storedResource() {
                isStored = file.byteRange.map { record.storedRanges.contains($0) } ?? record.isComplete
            }
            if file.isSegment {
                variant.segmentCount += 1
                if isStored { variant.storedSegmentCount += 1 }
            }
            variant.isComplete = variant.isComplete && isStored
        }
        return variant.storedSegmentCount > 0 ? variant : nil
    }
}
