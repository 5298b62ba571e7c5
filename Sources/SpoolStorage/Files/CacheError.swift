public import Foundation

/// An error, with a message that names the cause and, if they are known, the resource and the byte range.
///
/// The message never contains a query value, a credential or a header field.
public struct CacheError: Error, CustomStringConvertible {
    /// The kind of an error. Codes may be added, so a `switch` needs a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        // docs/errors.md contains a row for each code. Apps store the numbers in statistics, so no number may ever be
        // changed or reused.
        enum Name: Int, CaseIterable {
            case resourceChanged = 1, unsatisfiableRange, originUnavailable, originErrorStatus, malformedResponse,
                storage
            case directoryInUse, catalogTooNew, catalogDamaged, notStored, incomplete, invalidArgument, closed
            case capacityExceeded, keyRequired, wrongEncryptionKey
        }

        let name: Name

        private init(_ name: Name) { self.name = name }

        /// All codes in this version.
        package static var allCases: [Code] { Name.allCases.map(Code.init) }

        /// The code's number, which is the same in every version, and is also the `code` of the `NSError`.
        public var number: Int { name.rawValue }

        /// The code's name, for logs.
        public var description: String { "\(name)" }

        /// The origin's bytes changed during a read. A new reader receives the new version.
        public static let resourceChanged = Code(.resourceChanged)
        /// The range starts at or after the end of the resource (HTTP status 416).
        public static let unsatisfiableRange = Code(.unsatisfiableRange)
        /// The origin could not be reached, or all retries failed.
        public static let originUnavailable = Code(.originUnavailable)
        /// The origin responded with a status that a retry would not change, such as 404.
        public static let originErrorStatus = Code(.originErrorStatus)
        /// The origin's response contradicts itself or the request.
        public static let malformedResponse = Code(.malformedResponse)
        /// A disk or file operation failed: no space, no permission, too many open files, or a damaged disk.
        public static let storage = Code(.storage)
        /// Another process is using the cache directory, or another cache in this process with a different
        /// configuration.
        public static let directoryInUse = Code(.directoryInUse)
        /// The catalog was written by a newer version of Spool.
        public static let catalogTooNew = Code(.catalogTooNew)
        /// The catalog is damaged. It is moved aside when the directory is next opened for writing.
        public static let catalogDamaged = Code(.catalogDamaged)
        /// No part of the resource is stored.
        public static let notStored = Code(.notStored)
        /// Only part of the resource is stored.
        public static let incomplete = Code(.incomplete)
        /// A URL, an argument or a value of the configuration can't be used.
        public static let invalidArgument = Code(.invalidArgument)
        /// The cache or the resource has been closed or removed.
        public static let closed = Code(.closed)
        /// The media does not fit in the cache. It is too large, or the capacity is in use by media that is being
        /// played or is pinned. The media can still be played without being stored.
        public static let capacityExceeded = Code(.capacityExceeded)
        /// The cache is encrypted, and no key was given.
        public static let keyRequired = Code(.keyRequired)
        /// The cache is encrypted with a different key, or is not encrypted.
        public static let wrongEncryptionKey = Code(.wrongEncryptionKey)
    }

    /// The kind of the error.
    public let code: Code
    /// The text for a log, with the cause and, if they are known, the byte range and the resource. A resource is named
    /// by the scheme, host and path of its URL.
    public let message: String
    /// The resource; `nil` if the error concerns the whole cache, or a resource without a key.
    public internal(set) var key: CacheKey?
    /// The bytes that failed; `nil` if the error does not concern bytes. The end is `Int64.max` if the end of the
    /// resource is unknown.
    public internal(set) var range: Range<Int64>?
    /// The HTTP status; `nil` if the error was not caused by an origin's response.
    public let httpStatus: Int?
    /// The underlying error from the system, SQLite or a transport; `nil` if there is none.
    public let underlying: (any Error)?
    /// Details that a higher layer adds to the error, such as the rejected response. The store does not use them.
    package var detail: (any CacheErrorDetail)?

    /// Creates an error; `status` is the HTTP status.
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

    /// Creates an error for an app's own ``ByteStore`` to throw.
    ///
    /// - Parameters:
    ///   - message: A sentence that names the operation, the file and the cause.
    ///   - underlying: The underlying error. For a `POSIXError` such as `ENOSPC`, the cache tries again later.
    public static func storage(_ message: String, underlying: (any Error)? = nil) -> CacheError {
        CacheError(.storage, message, underlying: underlying)
    }

    /// Returns the error with the given resource and range. A resource or range that it already contains is not
    /// replaced.
    package func about(_ key: CacheKey?, _ range: Range<Int64>? = nil) -> CacheError {
        var error = self
        error.key = error.key ?? key
        error.range = error.range ?? range
        return error
    }

    /// The ``message``.
    public var description: String { message }
}

extension CacheError {
    /// Returns the error for a failed system call on a file.
    ///
    /// - Parameters:
    ///   - attempt: The operation, such as "could not be written".
    ///   - path: The path of the file.
    ///   - code: The system's `errno`.
    ///   - cause: The cause, if the system's text would be misleading; otherwise `nil`.
    package static func system(
        _ attempt: String, path: String, errno code: Int32, cause: String? = nil
    ) -> CacheError {
        // For known codes, strerror returns constant strings on glibc and Darwin, so there is no data race.
        let cause = cause ?? strerror(code).map { String(cString: $0).lowercased() } ?? "error \(code)"
        let underlying: any Error =
            POSIXErrorCode(rawValue: code).map { POSIXError($0) }
            ?? NSError(domain: NSPOSIXErrorDomain, code: Int(code))
        return CacheError(.storage, "“\(path)” \(attempt): \(cause)", underlying: underlying)
    }

    /// The system's code for a failed file operation, such as `.ENOSPC` or `.ENOENT`.
    package var posixCode: POSIXErrorCode? { (underlying as? POSIXError)?.code }
}

/// Texts for users, and numbers for statistics.
///
/// The texts are in English. An app in another language can choose its own text based on ``CacheError/code``.
extension CacheError: LocalizedError, CustomNSError {
    /// A sentence without a URL or a number, for an alert.
    public var errorDescription: String? {
        switch code.name {
        case .resourceChanged: "The media changed while it was being played."
        case .unsatisfiableRange: "The media ends before the requested position."
        case .originUnavailable: "The server can’t be reached."
        case .originErrorStatus:
            switch httpStatus {
            case 401, 403, 407: "The server requires you to sign in, or does not allow you to access this media."
            case 404, 410: "The media is not on the server."
            default: "The server refused to send the media."
            }
        case .malformedResponse: "The server’s response can’t be played."
        case .storage: "The device’s storage can’t be used."
        case .directoryInUse: "The stored media is in use by another app."
        case .catalogTooNew: "The stored media was saved by a newer version of this app."
        case .catalogDamaged: "The list of the stored media is damaged."
        case .notStored: "The media is not stored."
        case .incomplete: "Only part of the media is stored."
        case .invalidArgument: "The media’s URL or a setting is invalid."
        case .closed: "The media cache is closed."
        case .capacityExceeded: "The media cache is full."
        case .keyRequired, .wrongEncryptionKey: "The stored media can’t be unlocked."
        }
    }

    /// Whether the disk or the catalog can't be used now, so that media is played without them.
    package var isStorageError: Bool { code == .storage || code == .catalogDamaged }

    /// The ``message``, which names the cause.
    public var failureReason: String? { message }

    /// The action that the user can take; `nil` if the user can only contact the developer.
    public var recoverySuggestion: String? {
        switch code.name {
        case .resourceChanged: "Play the media again from the start."
        case .originUnavailable: "Check the network connection and try again."
        case .originErrorStatus:
            switch httpStatus {
            case 401, 403, 407: "Sign in again."
            default: nil
            }
        case .malformedResponse: "If the network requires you to sign in on a web page, sign in there and try again."
        case .storage: "Free up space on the device and try again."
        case .directoryInUse: "Close the other app and try again."
        case .catalogTooNew: "Update this app."
        case .notStored, .incomplete: "Connect to the network to load the media."
        case .capacityExceeded: "Remove stored media that you no longer need."
        case .unsatisfiableRange, .catalogDamaged, .invalidArgument, .closed, .keyRequired, .wrongEncryptionKey: nil
        }
    }

    /// The domain of the error as an `NSError`.
    public static var errorDomain: String { "Spool.CacheError" }

    /// The code's number, which is the same in every version. docs/errors.md lists all numbers.
    public var errorCode: Int { code.number }

    /// The error's texts and its cause, under Foundation's keys.
    public var errorUserInfo: [String: Any] { userInfo(underlying: underlying) }
}

extension LocalizedError {
    /// Returns the error's texts and its cause, under Foundation's keys.
    package func userInfo(underlying: (any Error)?) -> [String: Any] {
        var details: [String: Any] = [:]
        details[NSLocalizedDescriptionKey] = errorDescription
        details[NSLocalizedFailureReasonErrorKey] = failureReason
        details[NSLocalizedRecoverySuggestionErrorKey] = recoverySuggestion
        details[NSUnderlyingErrorKey] = underlying
        return details
    }
}

/// Details that a layer above the store adds to an error.
package protocol CacheErrorDetail: Sendable {}
