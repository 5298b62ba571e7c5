import SpoolAVFoundation

/// A cache for signed URLs, of which each has another token: what they have in common names the media.
func cacheForSignedURLs(in folder: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.keyPolicy = .ignoring(queryItems: ["token", "expires"])
    return MediaCache(directory: folder, configuration: configuration)
}

/// Or the app names it, whatever its URL is today.
func source(ofTrack number: Int, at url: URL) -> MediaSource {
    MediaSource(url: url, key: CacheKey("track \(number)"))
}
