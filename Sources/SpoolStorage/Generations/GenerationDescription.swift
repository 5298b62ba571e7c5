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
}
