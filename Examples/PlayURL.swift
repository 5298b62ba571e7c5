import SpoolAVFoundation

/// Returns a player for a URL: it plays from the origin first, and later from disk. It resumes automatically after a
/// stall.
@MainActor
func player(for url: URL, in cache: MediaCache) -> AVPlayer {
    AVPlayer(caching: url, in: cache)
}
