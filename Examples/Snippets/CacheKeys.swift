import SpoolAVFoundation

// Examples from docs/guides/cache-keys.md.

private func configurations() -> [MediaCache.Configuration] {
    var configuration = MediaCache.Configuration()
    configuration.keyPolicy = .ignoring(queryItems: ["token", "expires"])  // other query items count
    let signed = configuration
    configuration.keyPolicy = .ignoringQuery.ignoringHost()  // ignores the query and the host
    let mirrored = configuration
    configuration.keyPolicy = CacheKeyPolicy { url in "media " + url.lastPathComponent }  // a custom rule
    return [signed, mirrored, configuration]
}

private func source(of id: Int, at url: URL) -> MediaSource {
    let source = MediaSource(url: url, key: CacheKey("track \(id)"))
    return source
}

/// Returns whether a policy assigns the same key to two URLs of the same media, and a different key to other media. Use
/// it to test a policy.
func namesMedia(_ policy: CacheKeyPolicy, today: URL, tomorrow: URL, another: URL) -> Bool {
    policy.key(for: today) == policy.key(for: tomorrow) && policy.key(for: today) != policy.key(for: another)
}
