import SpoolAVFoundation

/// Returns a cache for signed URLs. Tokens are ignored, so the rest of the URL identifies the media.
func cacheForSignedURLs(in folder: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.keyPolicy = .ignoring(queryItems: ["token", "expires"])
    return MediaCache(directory: folder, configuration: configuration)
}

/// Returns media with a custom key, which does not depend on the current URL.
func source(ofTrack number: Int, at url: URL) -> MediaSource {
    MediaSource(url: url, key: CacheKey("track \(number)"))
}
