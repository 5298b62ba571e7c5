import SpoolAVFoundation

/// Returns one cache for the whole app, with at most 2 GiB. Media played in only one session is evicted first.
///
/// Creating it costs little and can't fail, because the directory is opened at the first playback.
func sharedCache() -> MediaCache {
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
    return MediaCache(directory: caches.appending(path: "media"), capacity: .bytes(2 << 30))
}
