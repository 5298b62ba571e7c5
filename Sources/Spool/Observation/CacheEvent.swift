public import SpoolStorage

/// Something that happened to a media file or to the whole cache, for apps that show or log what it does; see
/// ``MediaCache/events()``.
public struct CacheEvent: Sendable {
    /// What happened; more kinds may be added, so switch with a default.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Kind: Sendable {
        /// A request for this byte range went out; a nil upper bound asks to the end.
        case requested(lower: Int64, upper: Int64?)
        /// Bytes of this range landed and are readable.
        case landed(Range<Int64>)
        /// A transfer was given up before its end because nobody wanted what it brought.
        case cancelled(at: Int64)
        /// The origin failed; the next try comes after `delay`.
        case retrying(after: Duration, cause: CacheError)
        /// The origin serves another version; the former one was dropped.
        case changed(reason: String)
        /// A response contradicts itself, and only part of it was believed.
        case discrepancy(String)
        /// These stored bytes were not what had been received, by their checksums, and were dropped: they are fetched again.
        case blocksDropped(Range<Int64>)
        /// Bytes are not being kept, and why; playback goes on.
        case notKept(cause: CacheError)
        /// These bytes were evicted to hold the capacity.
        case evicted(bytes: Int64)
        /// Every byte of the resource is there.
        case completed
        /// Readers were given this error.
        case failed(CacheError)
        /// A player was handed the origin's own URL, and why: what it plays is not looked for in the cache, and not kept.
        case bypassed(reason: String)
        /// The cache's directory can't be used, and why: everything plays, nothing is kept. What is stored is found only
        /// where another process has the directory.
        case unusable(cause: CacheError)
        /// What was found wrong with the directory when it was opened, and what became of it.
        case notice(String)
    }

    /// The resource; nil for what concerns the whole cache.
    public var key: CacheKey?
    /// Its scheme, host and path; the directory's path for what concerns the whole cache.
    public var address: String
    /// What happened.
    public var kind: Kind
}

extension CacheEvent.Kind {
    /// The same, its error saying which resource it is about.
    func about(_ key: CacheKey?) -> Self {
        switch self {
        case .retrying(let delay, let cause): .retrying(after: delay, cause: cause.about(key))
        case .notKept(let cause): .notKept(cause: cause.about(key))
        case .failed(let error): .failed(error.about(key))
        default: self
        }
    }
}
