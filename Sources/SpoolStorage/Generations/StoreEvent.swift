/// What happened in the store; delivered on any thread, never under a lock.
package enum StoreEvent: Sendable {
    /// So many bytes of the resource were evicted.
    case evicted(CacheKey, url: String, bytes: Int64)
    /// Stored bytes did not match their seals, or could not be read, and were given up.
    case blocksInvalidated(CacheKey, url: String, Range<Int64>)
    /// Bytes of the resource go to memory from now on, and why; once for each generation.
    case notKept(CacheKey, url: String, CacheError)
    /// Something that people should know and nobody waits for: the catalog could not be written, a sweep failed.
    case warning(String)
}
