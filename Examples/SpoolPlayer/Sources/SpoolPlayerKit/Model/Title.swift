import SpoolAVFoundation

/// A video, a stream or a recording, from any source.
struct Title: Identifiable, Sendable {
    let name: String
    let source: MediaSource

    /// The URL, which identifies the title.
    var id: URL { source.url }

    /// Whether the title is an HLS stream, which consists of many files. They are served by a server in the app instead
    /// of a resource loader.
    var isStream: Bool { !CachingURLAsset.canCache(source) }
}
