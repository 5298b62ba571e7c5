public import SpoolStorage

/// An event that concerns one resource or the whole cache, for apps that show or log events; see
/// ``MediaCache/events()``.
public struct CacheEvent: Sendable {
    /// The kind of event. More kinds may be added, so use a default case.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Kind: Sendable {
        /// A request for this byte range was sent. If the upper bound is `nil`, the range extends to the end of the
        /// resource.
        case requested(lower: Int64, upper: Int64?)
        /// The bytes in this range were stored and are readable.
        case stored(Range<Int64>)
        /// A transfer was cancelled before its end because no reader needed it.
        case requestCancelled(at: Int64)
        /// The origin failed, and the next attempt follows after `delay`.
        case retrying(after: Duration, cause: CacheError)
        /// The origin now sends a different version. The previous version was discarded.
        case originChanged(reason: String)
        /// The origin sent an inconsistent response, which was used as far as possible. The text describes the
        /// inconsistency.
        case inconsistentResponse(String)
        /// These stored bytes failed their checksums and were discarded. They are fetched again when they are needed.
        case damagedBlocksDiscarded(Range<Int64>)
        /// Bytes are not stored, for this reason. Playback continues.
        case notCached(cause: CacheError)
        /// This number of bytes was evicted, for example to stay within the capacity.
        case evicted(bytes: Int64)
        /// Every byte of the resource is stored.
        case completed
        /// Readers received this error.
        case failed(CacheError)
        /// A player received the origin's own URL, for this reason. The playback does not use the cache.
        case bypassed(reason: String)
        /// The cache directory can't be used, for this reason. Media plays without being stored. Stored bytes are used
        /// only if another process has the directory open.
        case cacheUnavailable(cause: CacheError)
        /// A problem with the directory was found or resolved when the directory was opened. The text describes it.
        case warning(String)
    }

    /// The cache key of the resource; `nil` for an event that concerns the whole cache.
    public var key: CacheKey?
    /// The scheme, host and path of the resource's URL. For an event that concerns the whole cache, this is the path of
    /// the directory.
    public var redactedURL: String
    /// The kind of event.
    public var kind: Kind
}

extension CacheEvent.Kind {
    /// Returns the event with an error that names the resource.
    func about(_ key: CacheKey?) -> Self {
        switch self {
        case .retrying(let delay, let cause): .retrying(after: delay, cause: cause.about(key))
        case .notCached(let cause): .notCached(cause: cause.about(key))
        case .failed(let error): .failed(error.about(key))
        default: self
        }
    }
}

/// The current activity of a cache, and its counts since it was created, for statistics and status pages.
package struct CacheActivity: Sendable {
    /// A current request to an origin.
    package struct RunningTransfer: Sendable, Hashable {
        /// A number that identifies the transfer while the cache is open.
        package var id: Int
        /// The key under which the received bytes are stored.
        package var key: CacheKey
        /// The scheme, host and path of the URL.
        package var redactedURL: String
        /// The offsets of the first requested byte and of the next byte to receive.
        package var start: Int64
        package var position: Int64
        /// The end of the requested range; `nil` for the end of the origin's response.
        package var end: Int64?
    }

    /// An open reader.
    package struct ActiveReader: Sendable, Hashable {
        /// A number that identifies the reader while the cache is open.
        package var id: Int
        /// The key of the bytes that the reader reads.
        package var key: CacheKey
        /// The offset of the next byte to read.
        package var position: Int64
        /// Whether the reader is waiting for bytes.
        package var isWaiting: Bool
    }

    /// The counts of events that do not occur for every chunk.
    package struct Counts: Sendable, Hashable {
        /// The number of evictions of resources or of parts of resources.
        package var evictions = 0
        /// The number of evicted bytes.
        package var evictedBytes: Int64 = 0
        /// The number of failed requests that are retried.
        package var retries = 0
        /// The number of ``CacheEvent/Kind-swift.enum/notCached(cause:)`` events, by
        /// ``SpoolStorage/CacheError/Code-swift.struct`` of the cause.
        package var notCached: [CacheError.Code: Int] = [:]
        /// The number of reader errors, by ``SpoolStorage/CacheError/Code-swift.struct``.
        package var errors: [CacheError.Code: Int] = [:]
    }

    /// The number of open readers.
    package var readers = 0
    /// The open readers, sorted by key and number.
    package var openReaders: [ActiveReader] = []
    /// The current requests, sorted by URL and offset.
    package var transfers: [RunningTransfer] = []
    /// The counts of events.
    package var counts = Counts()
}

extension CacheActivity.Counts {
    /// Counts an event for which ``CacheEvent/Kind-swift.enum/counts`` is `true`.
    mutating func note(_ kind: CacheEvent.Kind) {
        switch kind {
        case .evicted(let bytes):
            evictions += 1
            evictedBytes += bytes
        case .retrying: retries += 1
        case .notCached(let cause): notCached[cause.code, default: 0] += 1
        case .failed(let error): errors[error.code, default: 0] += 1
        default: break
        }
    }
}

extension CacheEvent.Kind {
    /// Whether ``CacheActivity/Counts`` counts events of this kind.
    var counts: Bool {
        switch self {
        case .evicted, .retrying, .notCached, .failed: true
        default: false
        }
    }
}
