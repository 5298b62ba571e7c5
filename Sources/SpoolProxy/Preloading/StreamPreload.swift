#if Proxy
import Foundation
import HTTPTypes
package import Spool
package import SpoolStreams

/// The part of an HLS or DASH stream to preload.
package enum StreamAmount: Equatable, Sendable {
    /// The segments that start within the given number of seconds, at least one segment.
    case first(seconds: Double)
    case whole
    /// The playlist or manifest itself, like any other file, without its segments.
    case playlist
}

/// The outcome of the preload of one URL.
package struct PreloadOutcome: Sendable {
    /// The number of bytes that are stored, and the number of bytes to store.
    package var storedBytes: Int64
    package var targetBytes: Int64?
    package var isComplete: Bool
    /// The error that ended the preload early, or `nil` if there is none.
    package var error: (any Error)?
    /// Whether the document is not a playlist or manifest, although the extension of its URL is `m3u8` or `mpd`.
    package private(set) var isWrongDocument = false

    /// Creates the outcome of a preload of a single file.
    package init(_ state: PreloadState) {
        storedBytes = state.storedByteCount
        targetBytes = state.targetByteCount
        isComplete = state.isComplete
        error = state.error
    }

    /// Preloads the files that the resource lists, if it is an HLS playlist or a DASH manifest, and adds them to the
    /// outcome.
    ///
    /// If the resource is neither, but the extension of its URL is `m3u8` or `mpd`, this method removes it. The outcome
    /// then contains an error.
    ///
    /// - Parameter check: A function that throws an error if the URL of a file may not be requested. The default allows
    ///   all URLs.
    /// - Throws: `CancellationError` if the task is cancelled.
    package mutating func addStream(
        of source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int,
        check: @escaping @Sendable (OriginURL) throws -> Void = { _ in }
    ) async throws {
        let media = cache.media(for: source)
        let isNamed = ManifestKind.isExtension(source.url.pathExtension)
        // A web page is not media, so its preload fails.
        let mayBePage = isNamed && (error as? CacheError)?.code == .malformedResponse
        guard isComplete && (isNamed || amount != .playlist) || mayBePage,
            let prefix = await Self.start(of: media)
        else { return }
        if let reason = ManifestKind.contradiction(of: prefix, toExtension: source.url.pathExtension) {
            // If the document stayed stored, it would be used instead of the playlist.
            _ = try? await media.remove()  // If this fails, the document is evicted later.
            (storedBytes, isComplete, isWrongDocument) = (0, false, true)
            error = CacheError(.malformedResponse, "\(source.redactedURL) \(reason)", key: media.key)
            return
        }
        guard isComplete, amount != .playlist, let kind = ManifestKind(prefix: prefix), kind != .dashElement else {
            return
        }
        if kind.isPlain(prefix) {
            // The first bytes do not show the kind.
            guard let all = await Self.start(of: media, length: HLSPlaylist.maximumBytes), !kind.isPlain(all) else {
                return
            }
        }
        do {
            let bytes = try await Self.fetch(kind, source, amount, in: cache, jobs: jobs, check)
            (storedBytes, targetBytes) = (bytes, bytes)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            (isComplete, self.error) = (false, error)
        }
    }

    /// Returns the first bytes of a resource, or `nil` if they can't be read back.
    private static func start(of media: MediaResource, length: Int = ManifestKind.prefixLength) async -> [UInt8]? {
        var bytes: [UInt8] = []
        do {
            for try await chunk in media.preloadReader(.bytes(0..<Int64(length))) {
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            }
            return bytes
        } catch {
            // A resource that can't be read back is treated as a single file.
            return nil
        }
    }

    /// Downloads a stream or its start.
    ///
    /// - Returns: The number of stored bytes.
    private static func fetch(
        _ kind: ManifestKind, _ source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int,
        _ check: @escaping @Sendable (OriginURL) throws -> Void
    ) async throws -> Int64 {
        var seconds: Double?
        if case .first(let first) = amount { seconds = first }
        switch kind {
        case .hls:
            let variant: HLSVariantSelection = seconds == nil ? .highest : .first
            var download = HLSDownloader(
                source, in: cache, variant: variant, firstSeconds: seconds, maximumConcurrentDownloads: jobs)
            download.check = check
            return try await download.run().progress.bytes
        case .dash, .dashElement:
            var download = DASHDownloader(source, in: cache, firstSeconds: seconds, maximumConcurrentDownloads: jobs)
            download.check = check
            return try await download.run().bytes
        }
    }
}
#endif
