/// What the catalog knows of a media file that is to be kept offline.
package struct DownloadRecord: Hashable, Sendable {
    /// The set's name.
    package var set: String
    /// The cache key's hash.
    package var key: String
    /// Scheme, host and path: what people are shown.
    package var url: String
    /// The whole address; nil where it was not to be kept.
    package var source: String?
    /// The whole resource's length in bytes, if it is known.
    package var length: Int64?
    /// Bytes in recorded blocks.
    package var storedBytes: Int64 = 0

    /// Creates a record.
    package init(set: String, key: String, url: String, source: String?) {
        self.set = set
        self.key = key
        self.url = url
        self.source = source
    }
}
