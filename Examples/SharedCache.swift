import SpoolAVFoundation

/// One cache for the whole app, of at most 2 GiB: what was played in one sitting only goes first.
///
/// It costs nothing to make, and can't fail: the directory is opened when something is first played.
func sharedCache() -> MediaCache {
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
    return MediaCache(directory: caches.appending(path: "media"), capacity: .bytes(2 << 30))
}
