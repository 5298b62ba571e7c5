import HTTPTypes
import SpoolAVFoundation

// Examples from the guides in docs/guides.

/// Returns an item for media that requires a token.
@MainActor
private func item(at url: URL, token: String, in cache: MediaCache) -> AVPlayerItem {
    let source = MediaSource(url: url, headerFields: [.authorization: "Bearer \(token)"])
    let item = AVPlayerItem(caching: source, in: cache)
    return item
}

private func limits() -> MediaCache.Configuration {
    var configuration = MediaCache.Configuration()
    configuration.capacity = .bytes(2 << 30)
    configuration.minimumFreeSpace = 1 << 30  // leaves 1 GiB of the volume to other apps
    configuration.maximumAge = .seconds(30 * 86_400)  // removes media not played for 30 days
    configuration.eviction = .leastRecentlyUsed
    configuration.evictionQuotas = [.host("media.example.org", 500 << 20)]  // at most 500 MiB from this host
    return configuration
}

/// Protects a stream and all of its files from eviction, ends the protection, and then removes the stream.
private func protect(_ stream: URL, in cache: MediaCache) async throws {
    try await cache.pin(cache.key(for: stream))
    try await cache.unpin(cache.key(for: stream))
    try await cache.remove(cache.key(for: stream))
}

private func show(_ cache: MediaCache) {
    let statistics = cache.statistics
    print("\(statistics.bytesFromCache) bytes from the cache, \(statistics.bytesFromOrigin) fetched")
}
