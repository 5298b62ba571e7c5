import HTTPTypes
import Spool
import SpoolProxy

/// How the preload of one URL ended.
struct PreloadOutcome: Sendable {
    var landed: Int64
    var wanted: Int64?
    var isComplete: Bool
    var error: (any Error)?

    init(_ state: PreloadState) {
        landed = state.landedByteCount
        wanted = state.wantedByteCount
        isComplete = state.isComplete
        error = state.error
    }

    /// Adds what a playlist of HLS, or a manifest of DASH, names, if the media that was preloaded is one.
    ///
    /// - Throws: `CancellationError`.
    mutating func addStream(
        of source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int
    ) async throws {
        guard isComplete, amount != .playlist, let kind = await Self.kind(of: source, in: cache) else { return }
        do {
            let bytes = try await Self.bring(kind, source, amount, in: cache, jobs: jobs)
            (landed, wanted) = (bytes, bytes)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            (isComplete, self.error) = (false, error)
        }
    }

    private static func kind(of source: MediaSource, in cache: MediaCache) async -> ManifestKind? {
        var prefix: [UInt8] = []
        let media = cache.media(for: source)
        do {
            for try await chunk in media.preloadReader(.bytes(0..<Int64(ManifestKind.prefixLength))) {
                chunk.withUnsafeBytes { prefix.append(contentsOf: $0) }
            }
            let type = try await media.response().response.fields[.contentType]
            return ManifestKind(prefix: prefix, contentType: type)
        } catch {
            // What can't be read back is preloaded as the file that it is.
            return nil
        }
    }

    /// - Returns: How many bytes are stored then.
    private static func bring(
        _ kind: ManifestKind, _ source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int
    ) async throws -> Int64 {
        var seconds: Double?
        if case .first(let first) = amount { seconds = first }
        switch kind {
        case .hls:
            let variant: HLSVariantSelection = seconds == nil ? .highest : .first
            let download = HLSDownloader(
                source, in: cache, variant: variant, firstSeconds: seconds, concurrency: jobs)
            return try await download.run().progress.bytes
        case .dash:
            return try await DASHDownloader(source, in: cache, firstSeconds: seconds, concurrency: jobs).run().bytes
        }
    }
}
