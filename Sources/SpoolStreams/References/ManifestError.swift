/// The reason why a manifest cannot be parsed, rewritten or downloaded.
package struct ManifestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a reason.
    package enum Code: Hashable, Sendable {
        /// The manifest, the result or a number of entries is above a limit.
        case tooLarge
        /// The document is not a manifest, or violates its format.
        case malformed
        /// The document has a document type or an encoding other than UTF-8, which are not allowed.
        case refused
        /// The stream is live. It has no end, so it cannot be downloaded.
        case live
        /// An address cannot be requested.
        case address
    }

    /// The kind.
    package let code: Code
    /// A sentence that states the problem, with its line number if there is one, and without the query of any address.
    package let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}

/// The maximum time for which a manifest may be stored, by its own content. HTTP may allow less.
///
/// A stale live manifest stops playback permanently. Therefore, the limit for a manifest that may change is shorter
/// than the time after which a player requests it again.
package enum ManifestLifetime: Hashable, Sendable {
    /// The manifest is complete and will not change.
    case unchanging
    /// The manifest states nothing, as a master playlist does. It may be stored as long as HTTP allows.
    case unstated
    /// The manifest is live and may be stored for this number of seconds.
    case seconds(Double)
    /// The manifest must not be stored.
    case none
}

/// One file of a stream, or a range of its bytes.
package struct StreamFile: Hashable, Sendable {
    /// The address.
    package var url: OriginURL
    /// The range of bytes, or `nil` for the whole file.
    package var byteRange: Range<Int64>?
    /// Whether the file is media, not a key or an initialization section.
    package var isSegment = false
    /// Whether ``byteRange`` is an estimate that may exceed the file.
    package var isEstimate = false
}
