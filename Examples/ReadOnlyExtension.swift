import SpoolAVFoundation

/// Returns the app's cache for use in an app extension. The extension plays stored media, fetches other media from the
/// origin, and neither locks nor changes the directory.
func cacheInExtension(group folder: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.isReadOnly = true
    return MediaCache(directory: folder.appending(path: "media"), configuration: configuration)
}
