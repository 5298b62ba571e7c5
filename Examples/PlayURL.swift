import SpoolAVFoundation

/// Returns a player for a URL. Media plays from the origin the first time, and from disk after that. Playback resumes
/// automatically after a stall.
@MainActor
func player(for url: URL, in cache: MediaCache) -> AVPlayer {
    AVPlayer(caching: url, in: cache)
}
