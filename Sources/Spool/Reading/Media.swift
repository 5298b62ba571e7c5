public import ByteRanges

/// One media file, opened through a cache: what it is, which of it is there, and readers of it.
///
/// Opening costs nothing; the catalog is asked when something is wanted. All `Media` of one cache key share what has
/// landed and what is on its way. The resource stays open while a `Media` or one of its readers lives.
public final class Media: Sendable {
    /// The resource's stable name in the cache.
    public let key: CacheKey
    /// Where its bytes come from.
    public let source: MediaSource
    let scheduler: Scheduler
    private let registry: OpenResources

    init(key: CacheKey, source: MediaSource, scheduler: Scheduler, registry: OpenResources) {
        self.key = key
        self.source = source
        self.scheduler = scheduler
        self.registry = registry
    }

    deinit { registry.release(scheduler) }

    /// Length, type and whether byte ranges can be asked for; from the catalog where it knows them.
    ///
    /// Otherwise the origin is asked for the first block, which is kept.
    ///
    /// - Throws: `CacheError` when the origin has to be asked and does not response, or refuses.
    public func contentInformation() async throws -> ContentInformation {
        try await scheduler.load()
        if let known = scheduler.contentInformation { return known }
        let reader = reader(.bytes(0..<1))
        do {
            _ = try await reader.next()
        } catch let error as CacheError where error.code == .unsatisfiableRange {
            // An empty resource has no first byte, but a length.
        }
        return scheduler.contentInformation
            ?? ContentInformation(length: nil, contentType: nil, supportsByteRanges: scheduler.supportsByteRanges)
    }

    /// The number of bytes, asking the origin if need be.
    func length() async throws -> Int64 {
        if let length = try await contentInformation().length { return length }
        throw CacheError(
            .unsatisfiableRange,
            "\(scheduler.address): the origin does not tell the length, so no last bytes can be read")
    }

    /// A reader of `range`; it opens when its first chunk is pulled.
    ///
    /// - Parameter chunkSize: The most bytes in one chunk.
    public func reader(_ range: MediaRange = .all, chunkSize: Int = 256 << 10) -> Reader {
        Reader(media: self, range: range, priority: .playback, chunkSize: chunkSize)
    }

    /// Which bytes have landed, as far as this process has opened the resource.
    public var landed: ByteRangeSet { scheduler.landed }

    /// Counts since the resource was opened.
    public var statistics: Statistics { scheduler.statistics }

    /// Opens the stored part of the resource, if there is one, without asking the origin.
    public func load() async throws { try await scheduler.load() }
}
