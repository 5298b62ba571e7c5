import ByteRanges
import HTTPRanges
import SpoolScheduling
import SpoolStorage

/// The request of a ``MediaReader``: its media, its range, and its conditions. This type opens the reader in its
/// resource.
struct ReaderOpening: Sendable {
    let media: MediaResource
    let range: MediaRange
    let priority: Priority
    /// The request directives of the client.
    let directives: RequestDirectives
    /// The use of the stored version by the reader, or `nil` to decide by freshness.
    let use: StoredFreshness.Use?
    /// The size of the first read-ahead.
    let ahead: ReadAheadStart

    /// Whether the reader needs only the response headers.
    var isForHeaders: Bool { range == MediaResource.beginning }

    /// Opens the resource and a reader of it.
    ///
    /// - Parameters:
    ///   - asked: The offset of the last seek, or `nil` before the first seek.
    ///   - waits: The waits for the source's resolver and for the length, which can be ended.
    ///   - turn: The turn of `waits` in which the caller decided to open the reader.
    func open(at asked: Int64?, _ waits: CancellableWaits, _ turn: UInt64) async throws -> OpenReader {
        let resource = try await resource(waits, turn)
        if let bounds = range.bounds(from: asked) { return try open(bounds, asked: asked, in: resource) }
        // For the last bytes, the length may have to be requested from the origin.
        guard case .suffix(let count) = range else { throw CancellationError() }
        let length = try await wait(waits, turn, in: resource) { [priority] media in
            try await media.length(toFindLast: count, for: priority)
        }
        return try open((MediaRange.start(ofLast: count, of: length), nil), asked: asked, in: resource)
    }

    private func resource(_ waits: CancellableWaits, _ turn: UInt64) async throws -> OpenResource {
        guard let resource = media.resource, resource.variants.waitsForResolver(of: media.credentials) else {
            return try await media.opened()
        }
        return try await wait(waits, turn, in: resource) { media in try await media.opened() }
    }

    private func wait<R: Sendable>(
        _ waits: CancellableWaits, _ turn: UInt64, in resource: OpenResource,
        _ body: @escaping @Sendable (MediaResource) async throws -> R
    ) async throws -> R {
        try await waits.run(turn, on: resource.context.executor.executor(for: .playback)) { [media] in
            try await body(media)
        }
    }

    /// Opens a reader in a resource that is open.
    ///
    /// - Throws: `CacheError` with code `.unsatisfiableRange` if the start is negative or past the largest possible
    ///   offset. `.notStored` if the bytes are not stored and may not be fetched.
    func open(
        _ bounds: (start: Int64, end: Int64?), asked: Int64?, in resource: OpenResource
    ) throws -> OpenReader {
        let (start, end) = bounds
        guard start >= 0, start <= Block.offsetLimit - Block.size else {
            throw CacheError(
                .unsatisfiableRange, "\(resource.redactedURL): the offset \(start.grouped) exceeds the maximum offset",
                status: 416,
                key: media.key, range: start..<max(start, end ?? .max))
        }
        try media.check(directives, use, start..<max(start, end ?? .max), in: resource)
        let reader = media.openReader(
            at: start, end: end, priority: priority, directives: directives, use: use, ahead: ahead, in: resource)
        let isSuffix = if case .suffix = range { true } else { false }
        return OpenReader(reader, position: start, isCountedFromEnd: isSuffix && asked == nil)
    }

    /// Opens a reader in its own resource, to replace a reader of the shared resource that has not read any bytes yet.
    ///
    /// - Throws: `CacheError` with code `.closed`.
    func openOwn(insteadOf reader: OpenReader) throws -> OpenReader {
        guard let (start, end) = range.bounds(from: reader.position),
            let own = media.openOwnReader(at: start, end: end, priority: priority, ahead: ahead)
        else { throw reader.resource.closedError }
        return OpenReader(own, position: start, isCountedFromEnd: reader.isCountedFromEnd)
    }
}
