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

    /// Adds what an HLS stream's playlist names, if the media that was preloaded is one.
    ///
    /// - Throws: `CancellationError`.
    mutating func addStream(
        of source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int
    ) async throws {
        guard isComplete, amount != .playlist,
            let download = await Self.download(of: source, amount, in: cache, jobs: jobs)
        else { return }
        do {
            let bytes = try await download.run().progress.bytes
            (landed, wanted) = (bytes, bytes)
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            (isComplete, self.error) = (false, error)
        }
    }

    private static func download(
        of source: MediaSource, _ amount: StreamAmount, in cache: MediaCache, jobs: Int
    ) async -> HLSDownloader? {
        var prefix: [UInt8] = []
        let media = cache.media(for: source)
        do {
            for try await chunk in media.preloadReader(.bytes(0..<Int64(ManifestKind.prefixLength))) {
                chunk.withUnsafeBytes { prefix.append(contentsOf: $0) }
            }
            let type = try await media.response().response.fields[.contentType]
            guard ManifestKind(prefix: prefix, contentType: type) == .hls else { return nil }
        } catch {
            // What can't be read back is preloaded as the file that it is.
            return nil
        }
        switch amount {
        case .first(let seconds):
            return HLSDownloader(source, in: cache, variant: .first, firstSeconds: seconds, concurrency: jobs)
        case .whole: return HLSDownloader(source, in: cache, concurrency: jobs)
        case .playlist: return nil
        }
    }
}
