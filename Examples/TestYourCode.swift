import SpoolAVFoundation
import SpoolTesting

/// A test of an app's own code: an origin that is made up, and a cache that goes when it is closed.
func playsOffline(_ play: (URL, MediaCache) async throws -> Void) async throws -> Bool {
    let origin = ScriptedUpstream(["/song.mp3": .pattern(300_000)])
    let cache = MediaCache.inMemory(upstream: origin)
    let url = URL(string: "https://media.example/song.mp3")!
    try await play(url, cache)
    origin.setReachable(false)
    try await play(url, cache)
    await cache.close()
    return origin.log.bytesSent("/song.mp3") == 300_000
}
