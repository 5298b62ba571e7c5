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
    /// - Parameter check: A function that throws an error if the URL of a file may not be requested. The default allows
    ///   all URLs.
    /// - Throws: `CancellationError` if the task is cancelled.
    package mutating func addStream(
        of source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int,
        check: @escaping @Sendable (OriginURL) throws -> Void = { _ in }
    ) async throws {
        guard isComplete, amount != .playlist, let kind = await Self.kind(of: source, in: cache) else { return }
        do {
            let bytes = try await Self.fetch(kind, source, amount, in: cache, jobs: jobs, check)
            (storedBytes, targetBytes) = (bytes, bytes)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            (isComplete, self.error) = (false, error)
        }
    }

    private static func kind(of source: MediaSource, in cache: MediaCache) async -> ManifestKind? {
        let media = cache.media(for: source)
        func start(ofLength length: Int) async throws -> [UInt8] {
            var bytes: [UInt8] = []
            for try await chunk in media.preloadReader(.bytes(0..<Int64(length))) {
                chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            }
            return bytes
        }
        do {
            let prefix = try await start(ofLength: ManifestKind.prefixLength)
            guard let kind = ManifestKind(prefix: prefix), kind != .dashElement else { return nil }
            guard kind.isPlain(prefix) else { return kind }
            return kind.isPlain(try await start(ofLength: HLSPlaylist.maximumBytes)) ? nil : kind
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
