/// Says why a command could not do what was asked, where the library has no error for it.
struct CommandFailure: Error {
    /// The kind of failure; docs/errors.md has a row for each.
    enum Code: String, CaseIterable, Sendable {
        /// The command line can't be understood: exit status 64.
        case usage
        /// A signal came: exit status 130 after `SIGINT`, else 1.
        case interrupted
        /// A file for `--header @FILE` or `SPOOL_HEADERS` can't be read, or a line in it is no header field.
        case headerFile
        /// A file for `--key-file` or `--passphrase-file` can't be read, or holds no key.
        case keyFile
        /// Standard output or the target file can't be written.
        case unwritable
        /// Whoever read standard output has gone; not told, since nobody may be there to hear it.
        case outputClosed
        /// The player can't play the media.
        case unplayable
        /// The player got no further for a minute.
        case stoodStill
        /// `verify` found damage that is still there.
        case damaged
        /// The demonstration's own film could not be made.
        case noFilm
        /// The demonstration found that the cache did not do what it should.
        case brokenPromise
    }

    /// The kind of failure.
    var code: Code
    /// A sentence, beginning in lower case.
    var message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// What went wrong with some of several things; the others are done.
struct CommandFailures: Error {
    /// One for each that went wrong.
    var all: [any Error]
}
