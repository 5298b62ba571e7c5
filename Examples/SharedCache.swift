import SpoolAVFoundation

/// Returns a cache for the whole app, with at most 2 GiB of media. Media that was played in only one session is evicted
/// first.
///
/// Creating the cache is fast and can't fail, because its directory is opened when media is first played.
func sharedCache() -> MediaCache {
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
    return MediaCache(directory: caches.appending(path: "media"), capacity: .bytes(2 << 30))
}
