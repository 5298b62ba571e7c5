#if Proxy
import Foundation
import HTTPRanges
public import Spool

extension HLSDownloader {
    /// What is stored of a stream, by its variants, in the order of its playlist; those of which nothing is stored are left
    /// out. The origin is not asked, whether its playlists are fresh or not. Their reading is done away from the caller's
    /// actor.
    ///
    /// ```swift
    /// let stored = try await HLSDownloader.storedVariants(of: source, in: cache)
    /// item.preferredPeakBitRate = Double(stored.first { $0.isComplete }?.bitRate ?? 0)
    /// ```
    ///
    /// - Throws: `CacheError`: `.storage`, `.closed`; `.malformedResponse` where what is stored at its URL is no playlist.
    @concurrent public static func storedVariants(
        of source: MediaSource, in cache: MediaCache
    ) async throws -> [HLSStoredVariant] {
        let download = StreamDownload(source, in: cache, concurrency: 1)
        guard let (playlist, found) = try await stored(source.url, download) else { return [] }
        guard playlist.kind == .master else {
            return try await [variant(source.url, playlist, found, download)].compactMap { $0 }
        }
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        var variants: [HLSStoredVariant] = []
        for listed in playlist.variants {
            // What can't be asked for is not stored.
            guard let url = rewriter.url(of: listed.uri)?.url,
                let (media, found) = try await stored(url, importing: playlist.variables, download),
                var variant = try await variant(url, media, found, download)
            else { continue }
            (variant.bitRate, variant.resolution, variant.codecs) = (listed.bandwidth, listed.resolution, listed.codecs)
            variants.append(variant)
        }
        return variants
    }

    /// A playlist that is stored whole, and where it was found; nil if it is not.
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
            return nil  // It was evicted since.
        } catch let error as ManifestError {
            throw CacheError(
                .malformedResponse, "\(MediaSource.displayAddress(of: url)) is no HLS stream: \(error)")
        }
    }

    /// Nil where none of its segments is stored.
    private static func variant(
        _ url: URL, _ playlist: HLSPlaylist, _ found: OriginURL, _ download: StreamDownload
    ) async throws -> HLSStoredVariant? {
        // Of a live one nothing is kept that could be told.
        guard let files = try? playlist.downloads(at: found) else { return nil }
        var variant = HLSStoredVariant(url: url, segmentCount: 0, storedSegments: 0, isComplete: true)
        for file in files {
            var isThere = false
            if let url = file.url.url, let record = try await download.media(at: url).storedResource() {
                isThere = file.byteRange.map { record.storedRanges.contains($0) } ?? record.isComplete
            }
            if file.isSegment {
                variant.segmentCount += 1
                if isThere { variant.storedSegments += 1 }
            }
            variant.isComplete = variant.isComplete && isThere
        }
        return variant.storedSegments > 0 ? variant : nil
    }
}
#endif
