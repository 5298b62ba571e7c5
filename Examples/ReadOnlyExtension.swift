import SpoolAVFoundation

/// The app's cache in one of its extensions: what the app has stored plays, the rest comes from the origin, and nothing
/// is locked or changed.
func cacheInExtension(group folder: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.isReadOnly = true
    return MediaCache(directory: folder.appending(path: "media"), configuration: configuration)
}
