/// An error that states why a manifest cannot be parsed, rewritten or downloaded.
package struct ManifestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    package enum Code: Hashable, Sendable {
        /// The size of the manifest or of the result, or the number of entries, exceeds a limit.
        case tooLarge
        /// The document is not a manifest, or violates its format.
        case malformed
        /// The document has a document type, which is not allowed.
        case refused
        /// The stream is live. It has no end, and therefore cannot be downloaded.
        case live
        /// A URL cannot be requested.
        case address
        /// The task was cancelled.
        case cancelled
    }

    /// The kind of error.
    package let code: Code
    /// A sentence that states the problem. It may include a line number, and includes URLs without their queries.
    package let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    /// The maximum total size of the absolute URLs of the files that a manifest references, in bytes.
    static let maximumURLBytes = 256 << 20

    /// Checks the total size of the absolute URLs in a manifest. A relative reference of one byte can have an
    /// absolute URL that is longer than the URL of the manifest.
    ///
    /// - Parameters:
    ///   - count: The number of references.
    ///   - queryCount: The number of references whose URLs contain the query of the manifest, because they are empty.
    /// - Throws: ``ManifestError`` with code `tooLarge`.
    static func checkURLs(_ count: Int, in url: OriginURL, withQuery queryCount: Int) throws(ManifestError) {
        let query = url.reference.query?.utf8.count ?? 0
        guard count * (url.description.utf8.count - query) + queryCount * query <= maximumURLBytes else {
            throw ManifestError(
                .tooLarge,
                "the URL of the manifest is too long for \(count) references: their URLs may exceed "
                    + "\(maximumURLBytes >> 20) MiB")
        }
    }

    /// Throws an error with code `cancelled` if the current task is cancelled.
    static func checkCancellation() throws(ManifestError) {
        guard !Task.isCancelled else { throw ManifestError(.cancelled, "the task was cancelled") }
    }
}

/// The maximum time for which a manifest may be stored, according to its content. HTTP may allow only a shorter time.
///
/// A stale live manifest would stop playback permanently. Therefore, the limit for a manifest that may change is
/// shorter than the time after which a player requests it again.
package enum ManifestLifetime: Hashable, Sendable {
    /// The manifest is complete and will not change.
    case unchanging
    /// The manifest, such as a master playlist, does not specify a limit. It may be stored as long as HTTP allows.
    case unstated
    /// The manifest is live and may be stored for this number of seconds.
    case seconds(Double)
    /// The manifest must not be stored.
    case none
}

/// One file of a stream, or a range of its bytes.
package struct StreamFile: Hashable, Sendable {
    /// The URL.
    package var url: OriginURL
    /// The range of bytes, or `nil` for the whole file.
    package var byteRange: Range<Int64>?
    /// Whether the file is media, rather than a key or an initialization section.
    package var isSegment = false
    /// Whether ``byteRange`` is an estimate that may extend past the end of the file.
    package var isEstimate = false
}
