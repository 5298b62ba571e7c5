package import ByteRanges
package import SpoolStorage

/// The stored part of an open resource.
package struct OpenContents: Sendable {
    /// The key under which the bytes are stored.
    package var key: CacheKey
    package var storedRanges: ByteRangeSet
    /// The length, or `nil` if it is unknown.
    package var length: Int64?
    /// Whether new bytes are stored in the directory.
    package var isStored: Bool
}
