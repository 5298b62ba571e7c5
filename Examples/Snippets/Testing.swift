import SpoolAVFoundation
import SpoolTesting
import Synchronization

// Pieces of docs/testing.md.

@MainActor
private func player(of film: URL, at url: URL) -> (CachingPlayer, MediaCache, ScriptedUpstream) {
    let origin = ScriptedUpstream(["/film.mp4": OriginResource(.file(film), contentType: "video/mp4")])
    let cache = MediaCache.inMemory(upstream: origin)
    let player = CachingPlayer(in: cache)
    player.play(url)
    return (player, cache, origin)
}

/// An origin that falls silent after the first 100,000 bytes, until the test says so.
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

/// An origin that fails twice, and then breaks off.
func survives(_ url: URL, play: (MediaCache) async throws -> Void) async throws -> Int {
    let origin = ScriptedUpstream(["/song.mp3": .pattern(300_000)])
    origin.update("/song.mp3") {
        $0.rules = [.first(2, .status(503)), .request(2, .cut(after: 100_000))]
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

/// A token that expires while the calendar goes on.
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

/// What a view shows of media that is half there, and can't be had now.
func halfThere() -> ResourceState {
    ResourceState(
        storedRanges: [0..<500_000], length: 1_000_000, failure: .storage("the disk is full"))
}

private func checkStore(_ makeStore: () -> any ByteStore) throws {
    for rule in ByteStoreContract.cases { try rule.run(on: makeStore()) }
}
