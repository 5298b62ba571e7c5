#if Tools
import Spool

/// A command error that has no counterpart in the library.
struct CommandFailure: Error {
    /// The kind of failure. Each kind has a row in docs/errors.md.
    enum Code: String, CaseIterable, Sendable {
        /// The command line is invalid. The exit status is 64.
        case usage
        /// A signal was received. The exit status is 130 after `SIGINT`, otherwise 1.
        case interrupted
        /// A file for `--header @FILE` or `SPOOL_HEADERS` cannot be read, or a line in it is not a header field.
        case headerFile
        /// A file for `--key-file` or `--passphrase-file` cannot be read, or does not contain a key.
        case keyFile
        /// Standard output or the target file cannot be written.
        case unwritable
        /// The reader of standard output has closed the pipe. This is not reported, because standard error may be
        /// closed, too.
        case outputClosed
        /// The player cannot play the media.
        case unplayable
        /// The player made no progress for a minute.
        case playbackStalled
        /// `spool verify` found damage that it did not repair.
        case damaged
        /// The video of the demonstration could not be generated.
        case noVideo
        /// The demonstration found that the cache failed a check.
        case checkFailed
    }

    /// The kind of failure.
    var code: Code
    /// A sentence that starts with a lower-case letter.
    var message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// The failures of some items of a command, when its other items succeeded.
struct CommandFailures: Error {
    /// One error for each failed item.
    var all: [any Error]
}

/// A cache error whose advice differs from the usual advice for its code.
struct AdvisedError: Error {
    var error: CacheError
    /// The next step for the user, or `nil` if the message includes it.
    var advice: String?

    init(_ code: CacheError.Code, _ message: String, advice: String?) {
        error = CacheError(code, message)
        self.advice = advice
    }
}

/// A warning from a command that continues. Each warning has a row in docs/errors.md.
enum Warning: String, CaseIterable, Sendable {
    /// New media is not stored, or a damaged catalog was moved aside. This is detected when the cache is opened.
    case opening
    /// The media that is being played or fetched is not stored.
    case notCached
    /// The media has changed at its origin.
    case originChanged
    /// Stored bytes were damaged, and will be fetched again.
    case damaged
    /// A file that contains header fields, a key or a passphrase is readable by other users.
    case readableSecret
    /// The player could not seek.
    case noSeek

    /// Writes the warning to standard error.
    func report(_ text: String) { Output.remark("warning: " + text.abbreviated) }
}

/// A writer of warnings from a cache to standard error. It writes each kind of warning once.
struct Warnings: Sendable {
    private let task: Task<Void, Never>

    /// Creates a writer that listens to the events of `cache` until the cache is closed.
    ///
    /// - Parameter onEvent: A function that receives all events.
    init(of cache: MediaCache, onEvent: @escaping @Sendable (CacheEvent) -> Void = { _ in }) {
        task = Task { [events = cache.events(), isReadOnly = cache.readOnlyReason != nil] in
            // That a cache is read-only has already been reported.
            var reported: Set<Warning> = isReadOnly ? [.notCached] : []
            for await event in events {
                onEvent(event)
                guard let (kind, text) = Self.text(of: event), reported.insert(kind).inserted else { continue }
                kind.report(text)
            }
        }
    }

    private static func text(of event: CacheEvent) -> (kind: Warning, text: String)? {
        switch event.kind {
        // This message already names the media.
        case .notCached(let cause) where cause.message.hasPrefix(event.redactedURL): (.notCached, cause.message)
        case .notCached(let cause): (.notCached, "\(event.redactedURL) is not stored: \(cause.message)")
        case .originChanged(let reason): (.originChanged, "\(event.redactedURL) has changed at its origin: \(reason)")
        case .damagedBlocksDiscarded:
            (.damaged, "stored bytes of \(event.redactedURL) were damaged; they are fetched again")
        default: nil
        }
    }

    /// Waits until all events have been reported. Call this method after the cache is closed.
    func end() async { await task.value }
}
#endif
