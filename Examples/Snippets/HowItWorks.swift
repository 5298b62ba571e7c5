import SpoolAVFoundation

// Pieces of docs/how-it-works.md.

private func configurations() -> [MediaCache.Configuration] {
    var configuration = MediaCache.Configuration()
    configuration.keyPolicy = .ignoring(queryItems: ["token", "expires"])  // all else of the query counts
    let signed = configuration
    configuration.keyPolicy = .ignoringQuery.ignoringHost()  // one of several hosts, each query another
    let mirrored = configuration
    configuration.keyPolicy = CacheKeyPolicy { url in "media " + url.lastPathComponent }  // the app's own rule
    return [signed, mirrored, configuration]
}

private func source(of id: Int, at url: URL) -> MediaSource {
    let source = MediaSource(url: url, key: CacheKey("track \(id)"))
    return source
}

/// What a test of an app's key policy says.
func namesMedia(_ policy: CacheKeyPolicy, today: URL, tomorrow: URL, another: URL) -> Bool {
    policy.key(for: today) == policy.key(for: tomorrow) && policy.key(for: today) != policy.key(for: another)
}
