/// What went wrong, as a sentence a person can act on: it names the resource, the byte range and the cause.
///
/// Never holds a query value, a credential or a header.
public struct CacheError: Error, CustomStringConvertible {
    /// The kind of failure; further codes may be added, so switch with a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        // Every code, once: docs/errors.md has a row for each. The numbers get into apps' statistics: none is changed or
        // given again.
        enum Name: Int, CaseIterable {
            case resourceChanged = 1, unsatisfiableRange, originUnavailable, originRefused, malformedResponse, storage
            case directoryInUse, catalogTooNew, catalogDamaged, notStored, incomplete, invalidArgument, closed
            case capacityExceeded, keyRequired, keyRefused
        }

        let name: Name

        private init(_ name: Name) { self.name = name }

        /// Every code of this version.
        package static var allCases: [Code] { Name.allCases.map(Code.init) }

        /// The code's number, the same in every version: what `NSError.code` says of the error.
        public var number: Int { name.rawValue }

        /// The code's name, for logs.
        public var description: String { "\(name)" }

        /// The origin's bytes changed while a reader was in them; a new read gets the new version, whole.
        public static let resourceChanged = Code(.resourceChanged)
        /// The range begins at or past the end of the resource (HTTP's 416).
        public static let unsatisfiableRange = Code(.unsatisfiableRange)
        /// The origin could not be reached, or kept failing until the retries were spent.
        public static let originUnavailable = Code(.originUnavailable)
        /// The origin responded with a status that more tries do not cure, such as 404.
        public static let originRefused = Code(.originRefused)
        /// The origin's response contradicts itself or what was asked.
        public static let malformedResponse = Code(.malformedResponse)
        /// A disk or file operation failed: no space, no permission, too many open files, a bad disk.
        public static let storage = Code(.storage)
        /// Another process holds the cache directory.
        public static let directoryInUse = Code(.directoryInUse)
        /// The catalog was written by a newer version of Spool.
        public static let catalogTooNew = Code(.catalogTooNew)
        /// The catalog can't be read; it was set aside.
        public static let catalogDamaged = Code(.catalogDamaged)
        /// The cache holds nothing of the resource.
        public static let notStored = Code(.notStored)
        /// The cache holds the resource only in part.
        public static let incomplete = Code(.incomplete)
        /// The URL or argument can't be used.
        public static let invalidArgument = Code(.invalidArgument)
        /// The cache, or what was read from, has been closed or removed.
        public static let closed = Code(.closed)
        /// All of the capacity is in use by what is being played or pinned, so that bytes are played without being kept.
        public static let capacityExceeded = Code(.capacityExceeded)
        /// The cache is encrypted, and no key was given.
        public static let keyRequired = Code(.keyRequired)
        /// The cache is encrypted with another key than the one that was given, or is not encrypted.
        public static let keyRefused = Code(.keyRefused)
    }

    /// The kind of failure.
    public let code: Code
    /// What failed, where and why, for a log: with the resource's scheme, host and path, the byte range and the cause.
    public let message: String
    /// The resource; nil for what concerns the whole cache, or a resource that has no key.
    public internal(set) var key: CacheKey?
    /// The bytes that could not be had, half-open; it ends at `Int64.max` where they were wanted to the end and nobody
    /// knows where that is. Nil where the error is not about bytes.
    public internal(set) var range: Range<Int64>?
    /// The HTTP status, where an origin's response is the cause.
    public let httpStatus: Int?
    /// What lies beneath: a system, SQLite or upstream error.
    public let underlying: (any Error)?
    /// What the engine hands on with the error, such as a refused response. The store does not look inside.
    package var attachment: (any Sendable)?

    /// Creates an error; `status` is HTTP's.
    package init(
        _ code: Code, _ message: String, status: Int? = nil, key: CacheKey? = nil, range: Range<Int64>? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.key = key
        self.range = range
        self.httpStatus = status
        self.underlying = underlying
    }

    /// What a ``ByteStore`` of one's own throws when it can't do what it is asked.
    ///
    /// - Parameters:
    ///   - message: A sentence: what failed, where, and why.
    ///   - underlying: What lies beneath. A `POSIXError` such as `ENOSPC` is understood: the cache tries again later.
    public static func storage(_ message: String, underlying: (any Error)? = nil) -> CacheError {
        CacheError(.storage, message, underlying: underlying)
    }

    /// The same error, saying which bytes of which resource it is about where it does not yet.
    package func about(_ key: CacheKey?, _ range: Range<Int64>? = nil) -> CacheError {
        var error = self
        error.key = error.key ?? key
        error.range = error.range ?? range
        return error
    }

    /// The ``message``.
    public var description: String { message }
}
