public import ByteRanges
public import Foundation
import HTTPRanges
import HTTPTypes
import SpoolScheduling
public import SpoolStorage
import Synchronization

/// A media resource that is opened through a cache. It provides the content information, the stored ranges, and
/// readers.
///
/// Opening is cheap, because the catalog is read only when it is needed. All `MediaResource` objects with the same
/// cache key share stored bytes and running transfers. The resource stays open while a `MediaResource` or one of its
/// readers exists.
public final class MediaResource: Sendable {
    /// The cache key of the resource.
    public let key: CacheKey
    /// The source of the bytes.
    public let source: MediaSource
    let credentials: SourceCredentials
    /// The open resource; `nil` if the cache was closed before the resource was opened.
    let resource: OpenResource?
    let opening: Int
    let identity: OpenResources.Identity
    private let registry: OpenResources
    /// The turn of the request for which the resource is opened.
    private let requestTurn: RequestTurns.Turn?
    /// Whether the resource was opened for a source that sends different header fields.
    package let isShared: Bool
    /// How readers may use the current version, as decided for the request for which the resource is opened. If it is
    /// `nil`, the use is decided when a reader opens.
    let decidedUse: StoredFreshness.Use?
    /// Whether the resource is opened for a request that may use another request's response.
    package var usesOthersResponse: Bool { decidedUse != nil || joinsTransfer }
    /// Whether the resource may receive the response to another request that was cancelled.
    package var joinsTransfer: Bool { requestTurn?.joinsTransfer ?? false }
    /// The resource whose version other requests are reading. See ``confirmed(_:priority:)``.
    let beside: MediaResource?

    init(
        identity: OpenResources.Identity, credentials: SourceCredentials, resource: OpenResource?,
        registry: OpenResources, requestTurn: RequestTurns.Turn? = nil, isShared: Bool = false,
        decidedUse: StoredFreshness.Use? = nil, beside: MediaResource? = nil
    ) {
        self.key = identity.key
        self.source = credentials.source
        self.credentials = credentials
        self.resource = resource
        let opening = resource?.freshness.recordOpening() ?? 0
        // The response to the request that was cancelled also counts for this opening.
        self.opening = requestTurn?.joinsTransfer == true ? 0 : opening
        self.identity = identity
        self.registry = registry
        self.requestTurn = requestTurn
        self.isShared = isShared
        self.decidedUse = decidedUse
        self.beside = beside
    }

    /// Opens the same resource again. Responses that were received earlier do not count for the new opening.
    func copy(
        using use: StoredFreshness.Use? = nil, asking requestTurn: RequestTurns.Turn? = nil
    ) -> MediaResource {
        MediaResource(
            identity: identity, credentials: credentials,
            resource: resource.flatMap { resource in registry.acquire(identity) { resource } }, registry: registry,
            requestTurn: requestTurn, isShared: isShared, decidedUse: use)
    }

    deinit { if resource != nil { registry.release(identity) } }

    /// The executor on which the bytes are read. A task that only reads and forwards bytes switches threads less often
    /// on this executor.
    package var readingExecutor: (any TaskExecutor)? { resource?.context.executor.executor(for: .playback) }

    /// Opens the resource, and returns it.
    func opened() async throws -> OpenResource {
        let resource = try openResource
        try await resource.load(credentials)
        return resource
    }

    /// The open resource, whether or not its stored part has been loaded.
    ///
    /// - Throws: `CacheError` with code `.closed` if the cache was closed before.
    var openResource: OpenResource {
        get throws {
            if let resource { return resource }
            throw CacheError(.closed, "\(source.redactedURL): the cache is closed", key: key)
        }
    }

    /// An open reader of a resource.
    struct OpenedReader {
        var id: ReaderID
        var position: ReaderPosition
        var resource: OpenResource
        /// The media that keeps the reader's own resource open; `nil` if the reader uses a shared resource.
        var own: MediaResource?
    }

    /// Opens a reader in the resource, or in its own resource if a request to the origin would end other readers.
    func openReader(
        at start: Int64, end: Int64?, priority: Priority, directives: RequestDirectives = .init(),
        use: StoredFreshness.Use? = nil, ahead: ReadAheadStart = .full, in resource: OpenResource
    ) -> OpenedReader {
        var use = use ?? decidedUse
        // The order matters: a version is confirmed before it is visible here, and must not be requested again.
        if resource.version.isUnprovable, (use ?? resource.freshness.use(opening, directives, from: start)) == .validate
        {
            // The purpose of a preload is to fill the cache, and a reader's own response is not cached.
            if priority == .preload {
                use = .stale
            } else if let reader = openOwnReader(at: start, end: end, priority: priority, ahead: ahead) {
                return reader
            }
        } else if priority != .preload, resource.version.isOtherPart(start, end),
            let reader = openOwnReader(at: start, end: end, priority: priority, ahead: ahead)
        {
            return reader
        }
        let (id, position, used) = resource.readers.open(
            at: start, end: end, priority: priority, credentials: credentials, opening: opening, directives: directives,
            use: use, ahead: ahead)
        if used == .staleMeanwhile { revalidate(resource) }
        return OpenedReader(id: id, position: position, resource: resource)
    }

    /// Opens a reader in its own resource. Returns `nil` if the cache is closed.
    func openOwnReader(
        at start: Int64, end: Int64?, priority: Priority, ahead: ReadAheadStart
    ) -> OpenedReader? {
        guard let own = separate(), let resource = own.resource else { return nil }
        let text =
            "\(resource.redactedURL) is played without being cached: nothing proves that the origin's responses belong to the same version"
        resource.send(.notCached(cause: CacheError(.malformedResponse, text)))
        let (id, position, _) = resource.readers.open(
            at: start, end: end, priority: priority, credentials: credentials, opening: own.opening, ahead: ahead)
        return OpenedReader(id: id, position: position, resource: resource, own: own)
    }

    /// Opens the same media again, with a separate response that is not cached. Returns `nil` if the cache is closed.
    ///
    /// This method is for a reader that must validate the response in progress before using it. The separate response
    /// is needed if nothing can prove that both responses belong to the same version. The readers of the response in
    /// progress continue.
    private func separate() -> MediaResource? {
        guard let context = resource?.context else { return nil }
        let identity = identity.separate()
        let opened = registry.acquire(identity) {
            OpenResource(key: key, credentials: credentials, context: context, separate: .init(beside: nil))
        }
        guard let opened else { return nil }
        return MediaResource(identity: identity, credentials: credentials, resource: opened, registry: registry)
    }

    /// Returns a lease on the version if all of `range` is stored and may be used without a request to the origin.
    func leaseIfStored(_ range: Range<Int64>, in resource: OpenResource) -> Lease? {
        resource.readers.leaseIfStored(range, opening: opening)
    }

    /// Returns the length, the type, and whether byte ranges can be requested. These values are read from the catalog
    /// if it contains them.
    ///
    /// If the catalog does not contain the values, the first block is requested from the origin and stored.
    ///
    /// - Throws: `CacheError` if the cache is closed, or if a request to the origin is needed and fails;
    ///   `CancellationError`.
    public func contentInformation() async throws -> ContentInformation {
        try await contentInformation(for: .playback)
    }

    private func contentInformation(for priority: Priority) async throws -> ContentInformation {
        let resource = try await opened()
        if let known = knownInformation(of: resource) { return known }
        // The headers of a response contain the information. The first block, which a player needs next, is stored.
        let reader = MediaReader(
            media: self, range: .bytes(0..<1), priority: priority, chunkSize: 1, isCounted: false)
        if resource.freshness.isEarlierError(at: opening) {
            defer { reader.cancel() }
            let response = try await reader.response().response
            return ContentInformation(
                length: response.length, contentType: response.fields[.contentType],
                supportsByteRanges: response.supportsRanges)
        }
        let failure = Mutex<(any Error)?>(nil)
        let known = await withTaskCancellationHandler {
            await resource.described {
                do {
                    _ = try await reader.next()
                } catch let error as CacheError where error.code == .unsatisfiableRange {
                    // An empty resource has no first byte, but it has a length.
                } catch {
                    failure.withLock { $0 = error }
                }
            }
        } onCancel: {
            reader.cancel()
        }
        // No reader waits for that block anymore. Bytes that are in transit are stored, but nothing is retried.
        if known != nil { reader.cancel() }
        try Task.checkCancellation()
        if let known { return known }
        if let failure = failure.withLock({ $0 }) { throw failure }
        return resource.contentInformation(evenStale: true)
            ?? ContentInformation(length: nil, contentType: nil, supportsByteRanges: resource.supportsByteRanges)
    }

    /// Whether ``contentInformation()`` can return without a request to the origin.
    ///
    /// - Throws: `CacheError` with code `closed`; `CancellationError`.
    package var isKnown: Bool {
        get async throws { knownInformation(of: try await opened()) != nil }
    }

    /// Returns the content information that is known without a request. An error that another opening received does not
    /// describe the media.
    private func knownInformation(of resource: OpenResource) -> ContentInformation? {
        resource.freshness.isEarlierError(at: opening) ? nil : resource.contentInformation
    }

    /// Returns the length in bytes, which is requested from the origin if necessary. If the origin does not send the
    /// total length, the last `count` bytes are requested.
    func length(toFindLast count: Int64, for priority: Priority) async throws -> Int64 {
        if let length = try await contentInformation(for: priority).length { return length }
        let resource = try openResource
        let asked = try await resource.unlessClosed { [credentials] in
            try await LengthRequest(resource: resource).length(credentials, last: count, priority)
        }
        if let asked { return asked }
        throw CacheError(
            .unsatisfiableRange,
            "\(source.redactedURL): the origin does not send the length, so the last bytes can't be read", key: key)
    }

    /// Returns a reader of `range`. The reader opens when its first chunk is requested.
    ///
    /// - Parameters:
    ///   - range: The bytes to read.
    ///   - chunkSize: The maximum number of bytes in one chunk.
    public func reader(_ range: MediaRange = .all, chunkSize: Int = 256 << 10) -> MediaReader {
        MediaReader(media: self, range: range, priority: .playback, chunkSize: chunkSize)
    }

    /// Returns a reader of a half-open range of bytes. The part past the end of the resource is omitted.
    public func reader(in range: Range<Int64>, chunkSize: Int = 256 << 10) -> MediaReader {
        reader(.bytes(range), chunkSize: chunkSize)
    }

    /// Returns a reader from an offset to the end of the resource: `media.reader(in: 1_000_000...)`.
    public func reader(in range: PartialRangeFrom<Int64>, chunkSize: Int = 256 << 10) -> MediaReader {
        reader(.from(range.lowerBound), chunkSize: chunkSize)
    }

    /// Returns the bytes of a half-open range. The part past the end of the resource is omitted.
    ///
    /// All of these bytes are in memory at the same time. Use this method for small ranges, such as headers, an image
    /// or a few seconds. For more bytes, use a ``reader(in:chunkSize:)-(Range<Int64>,_)``, whose memory use does not
    /// grow.
    ///
    /// - Throws: The errors from ``MediaReader/next()``. They are thrown even if some of the bytes are available.
    public func data(in range: Range<Int64>) async throws -> Data {
        guard !range.isEmpty else { return Data() }
        var data = Data()
        for try await chunk in reader(in: range) { chunk.withUnsafeBytes { data.append(contentsOf: $0) } }
        return data
    }

    /// Returns a reader like ``reader(_:chunkSize:)``, for bytes that no player waits for. Playback has priority over
    /// the reader.
    ///
    /// - Parameter handsOutSlices: Whether chunks may be slices, like those of ``sliceReader(_:chunkSize:)``.
    package func preloadReader(
        _ range: MediaRange = .all, chunkSize: Int = 256 << 10, handsOutSlices: Bool = false
    ) -> MediaReader {
        MediaReader(
            media: self, range: range, priority: .preload, chunkSize: chunkSize, handsOutSlices: handsOutSlices)
    }

    /// Returns a reader whose chunks are slices of the media file, if the bytes are in a file. Otherwise, it is like a
    /// reader from ``reader(_:chunkSize:)``.
    package func sliceReader(_ range: MediaRange = .all, chunkSize: Int = 1 << 20) -> MediaReader {
        MediaReader(media: self, range: range, priority: .playback, chunkSize: chunkSize, handsOutSlices: true)
    }

    /// The stored ranges. Reading this property does not send a request to the origin.
    ///
    /// - Throws: `CacheError` with code `.closed`; `CancellationError`.
    public var storedRanges: ByteRangeSet { get async throws { try await opened().scheduler.storedRanges } }

    /// The stored ranges, or an empty set if this process has not opened the resource.
    package var knownStoredRanges: ByteRangeSet { resource?.scheduler.storedRanges ?? ByteRangeSet() }

    /// The counts of received and delivered bytes since the resource was opened.
    public var statistics: TransferStatistics { resource?.serving.statistics ?? TransferStatistics() }

    /// The URL that the source last resolved to, or the source's own URL if it has not been resolved.
    package var resolvedURL: URL { credentials.known?.url ?? source.url }

    /// Opens the stored part of the resource, if there is one, without a request to the origin.
    package func load() async throws { _ = try await opened() }
}
