import SpoolAVFoundation

/// Plays a URL through the cache: first from the origin, later from disk. It resumes automatically after a stall.
@MainActor
func player(for url: URL, in cache: MediaCache) -> AVPlayer {
    AVPlayer(caching: url, in: cache)
}
