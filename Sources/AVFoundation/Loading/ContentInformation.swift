/// Type and length of a resource, as the delegate filled them in.
struct ContentInformation: Sendable, Equatable {
    /// A uniform type identifier.
    var contentType: String?
    /// Bytes in all; nil when not known.
    var contentLength: Int64?
    /// Whether a request may begin anywhere.
    var isByteRangeAccessSupported: Bool
}
