#if Proxy
/// How far the download of a stream has come.
public struct StreamProgress: Sendable, Hashable {
    /// Segments that are stored whole, of ``segmentCount``.
    public internal(set) var storedSegments = 0
    /// Segments to store; 0 until the playlists, or the manifest, have been read.
    public internal(set) var segmentCount = 0
    /// Bytes that are stored of all: playlists or manifest, keys, initialization sections and segments.
    public internal(set) var bytes: Int64 = 0

    /// From 0 to 1, by segments.
    public var fractionCompleted: Double {
        segmentCount > 0 ? Double(storedSegments) / Double(segmentCount) : 0
    }
}
#endif
