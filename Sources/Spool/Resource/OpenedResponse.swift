package import SpoolStorage

/// The head of the version that a reader is in, and how it came to be used.
package struct OpenedResponse: Sendable {
    /// What was done before what is stored was used.
    package enum Source: Sendable, Hashable {
        /// Nothing was asked: what is wanted is stored.
        case hit
        /// Nothing was asked about the head, but some of the bytes are not stored.
        case partial
        /// The origin has confirmed it (304).
        case revalidated
        /// A response has brought it.
        case miss
        /// It is stale: the origin could not be asked, or may be asked later.
        case stale
    }

    /// The head.
    package var response: StoredResponse
    /// Which version it is the head of; nil where the origin has told no more than the length.
    package var version: GenerationIdentifier?
    /// What was done before it was used.
    package var source: Source
}
