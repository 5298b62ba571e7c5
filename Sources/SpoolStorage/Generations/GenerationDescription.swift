/// What is known of a version of a media file beside its bytes; kept with it.
package struct GenerationDescription: Sendable, Hashable {
    /// The whole resource's length in bytes, if it is known.
    package var length: Int64?
    /// The media type that the origin named.
    package var contentType: String?
    /// What tells this version from others, as the engine encodes it. The store does not look inside.
    package var version: String
    /// What else the engine keeps with the version, such as its freshness. The store does not look inside.
    package var fields: String

    /// Creates a description.
    package init(length: Int64? = nil, contentType: String? = nil, version: String = "", fields: String = "") {
        self.length = length
        self.contentType = contentType
        self.version = version
        self.fields = fields
    }

    /// The bytes that a resource takes on disk whatever its length: its rows with their indices, its place in a folder, and
    /// what the file system adds to its last block.
    static let leastRowBytes: Int64 = 4096

    /// The bytes that the description takes on disk. Texts of more than 2 KiB take pages of their own in the catalog.
    func rowBytes(url: String) -> Int64 {
        let texts = [url, contentType ?? "", version, fields].reduce(0) { $0 + Int64($1.utf8.count) }
        let page = Self.leastRowBytes
        return page + (texts > 2048 ? (texts + page - 1) / page * page : 0)
    }
}
