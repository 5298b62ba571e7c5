import SpoolAVFoundation
import SpoolTesting

/// Tests an app's own code with a fake origin and an in-memory cache.
nonisolated(nonsending) func playsOffline(_ play: (URL, MediaCache) async throws -> Void) async throws -> Bool {
    let origin = ScriptedUpstream(["/song.mp3": .pattern(300_000)])
    let cache = MediaCache.inMemory(upstream: origin)
    let url = URL(string: "https://media.example/song.mp3")!
    try await play(url, cache)
    origin.setReachable(false)
    try await play(url, cache)
    await cache.close()
    return origin.log.bytesSent("/song.mp3") == 300_000
}
