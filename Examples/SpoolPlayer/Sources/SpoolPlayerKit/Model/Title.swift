import SpoolAVFoundation

/// A film, a stream or a recording, wherever it comes from.
struct Title: Identifiable, Sendable {
    let name: String
    let source: MediaSource

    /// The address is what tells titles apart.
    var id: URL { source.url }

    /// Whether it is HLS: many files, which a server inside the app brings, and no resource loader.
    var isStream: Bool { !CachingURLAsset.canCache(source) }
}
