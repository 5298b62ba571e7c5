import SpoolAVFoundation
import SpoolTesting
import Synchronization

// Examples from docs/testing.md and docs/guides/test-your-app.md.

@MainActor
private func player(of film: URL, at url: URL) -> (CachingPlayer, MediaCache, ScriptedUpstream) {
    let origin = ScriptedUpstream(["/film.mp4": OriginResource(.file(film), contentType: "video/mp4")])
    let cache = MediaCache.inMemory(upstream: origin)
    let player = CachingPlayer(in: cache)
    player.play(url)
    return (player, cache, origin)
}

/// Reads from an origin that stalls after 100,000 bytes, until the test releases the response. Returns the numbers of
/// bytes that were read and sent.
func waitsForBytes(_ url: URL) async throws -> [Int64] {
    var song = OriginResource.pattern(300_000)
    song.rules = [.request(0, .stall(after: 100_000))]
    let origin = ScriptedUpstream(["/song.mp3": song])
    let cache = MediaCache.inMemory(upstream: origin)
    let media = cache.media(for: url)
    let start = try await media.data(in: 0..<100_000)
    async let rest = media.data(in: 100_000..<300_000)
    origin.release("/song.mp3")
    let counts = [Int64(start.count), try await Int64(rest.count), origin.log.bytesSent("/song.mp3")]
    await cache.close()
    return counts
}

/// Plays from an origin that fails twice, and then truncates a response. Returns the number of requests.
func survives(_ url: URL, play: (MediaCache) async throws -> Void) async throws -> Int {
    let origin = ScriptedUpstream(["/song.mp3": .pattern(300_000)])
    origin.update("/song.mp3") {
        $0.rules = [.first(2, .status(503)), .request(2, .truncate(after: 100_000))]
    }
    let clock = ManualClock()
    let cache = MediaCache.inMemory(upstream: origin, clock: clock)
    let time = Task {
        while true {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
    }
    try await play(cache)
    await cache.close()
    time.cancel()
    return origin.log.exchanges("/song.mp3").count
}

/// Plays with a token that expires when the test changes the date. Returns the number of token requests.
func asksAgain(_ url: URL, play: (MediaSource, MediaCache) async throws -> Void) async throws -> Int {
    let today = Mutex(Date(timeIntervalSince1970: 0))
    let origin = ScriptedUpstream(["/song.mp3": .pattern(300_000)])
    let cache = MediaCache.inMemory(upstream: origin, now: { today.withLock { $0 } })
    let count = Mutex(0)
    let source = MediaSource(url: url) { _ in
        count.withLock { $0 += 1 }
        return ResolvedRequest(url: url, expiration: today.withLock { $0 + 3600 })
    }
    try await play(source, cache)
    today.withLock { $0 += 7200 }
    try await play(source, cache)
    await cache.close()
    return count.withLock { $0 }
}

/// Returns the state of media that is half stored and can't be fetched, for testing a view.
func halfThere() -> ResourceState {
    ResourceState(
        storedRanges: [0..<500_000], length: 1_000_000, failure: .storage("the disk is full"))
}

private func checkStore(_ makeStore: () -> any ByteStore) throws {
    for rule in ByteStoreContract.cases { try rule.run(on: makeStore()) }
}

/// Returns whether code that reads a whole resource works without the origin once the resource is cached.
private func readsThroughTheCache() async throws -> Bool {
    try await playsOffline { url, cache in
        for try await _ in cache.media(for: url).reader() {}
    }
}
