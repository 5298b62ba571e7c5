/// What went wrong, as a sentence a person can act on: it names the resource, the byte range and the cause.
///
/// Never holds a query value, a credential or a header.
public struct CacheError: Error, CustomStringConvertible {
    /// The kind of failure; further codes may be added, so switch with a default.
    public struct Code: Hashable, Sendable, CaseIterable, CustomStringConvertible {
        // Every code, once: docs/errors.md has a row for each.
        private enum Name: String, CaseIterable {
            case resourceChanged, unsatisfiableRange, originUnavailable, originRefused, malformedResponse, storage
            case directoryInUse, catalogTooNew, catalogDamaged, notStored, incomplete, invalidArgument, closed
        }

        private let name: Name

        private init(_ name: Name) { self.name = name }

        /// Every code of this version.
        public static var allCases: [Code] { Name.allCases.map(Code.init) }

        /// The code's name, for logs.
        public var description: String { name.rawValue }

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
    }

    /// The kind of failure.
    public var code: Code
    /// The sentence.
    public var message: String
    /// The HTTP status, where an origin's response is the cause.
    public var status: Int?
    /// What lies beneath: a system, SQLite or upstream error.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(_ code: Code, _ message: String, status: Int? = nil, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.status = status
        self.underlying = underlying
    }

    /// The sentence.
    public var description: String { message }
}
