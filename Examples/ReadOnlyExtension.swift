import SpoolAVFoundation

/// Returns the app's cache for an app extension. It plays stored media, and fetches other media from the origin. It
/// neither locks nor changes the directory.
func cacheInExtension(group folder: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.isReadOnly = true
    return MediaCache(directory: folder.appending(path: "media"), configuration: configuration)
}
