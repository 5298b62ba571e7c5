package import SpoolStorage

/// The headers of the version that a reader uses, and their source.
package struct OpenedResponse: Sendable {
    /// The source of a response.
    package enum Source: Sendable, Hashable {
        /// The requested bytes are stored, and no request was sent.
        case hit
        /// No request was sent for the headers, but some of the bytes are not stored.
        case partial
        /// The origin has confirmed the stored response (304).
        case revalidated
        /// The origin sent the response.
        case miss
        /// The response is stale, and is used without having been validated.
        case stale
    }

    /// The response headers.
    package var response: StoredResponse
    /// Whether all bytes of the version are stored or, as far as is known, will be.
    package var isExpectedWhole: Bool
    /// The version to which the headers belong; `nil` if the origin sent only the length.
    package var version: GenerationIdentifier?
    /// The source of the headers.
    package var source: Source
}
