import SpoolAVFoundation

/// Keeps one resource whatever room others need, removes another, and evicts what is left down to a size.
///
/// - Returns: How many bytes are stored now.
func makeRoom(
    in cache: MediaCache, keeping favourite: URL, removing disliked: URL, to size: Int64
) async throws -> Int64 {
    try await cache.pin(cache.key(for: favourite))
    try await cache.remove(cache.key(for: disliked))
    try await cache.evict(to: size)
    return cache.storedByteCount
}

/// Removes everything, pinned or not.
func clear(_ cache: MediaCache) async throws {
    try await cache.removeAll()
}
