import SpoolAVFoundation

/// Pins one resource, removes another, and evicts further resources until the cache is no larger than `size`, in bytes.
///
/// - Returns: The number of bytes that remain stored.
func freeSpace(
    in cache: MediaCache, keeping favorite: URL, removing disliked: URL, to size: Int64
) async throws -> Int64 {
    try await cache.pin(cache.key(for: favorite))
    try await cache.remove(cache.key(for: disliked))
    try await cache.evict(to: size)
    return cache.storedByteCount
}

/// Removes everything, pinned or not.
func clear(_ cache: MediaCache) async throws {
    try await cache.removeAll()
}
