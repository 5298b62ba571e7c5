import SpoolAVFoundation

/// Downloads media for a flight as one set, which is pinned from the start. Playback has priority over downloads.
nonisolated(nonsending) func keep(_ urls: [URL], in cache: MediaCache, show: (DownloadSet) -> Void) async throws {
    try await cache.downloads.add(urls.map { MediaSource(url: $0) }, to: "Flight")
    for await set in cache.downloads.states(of: "Flight") {
        show(set)
        if set.items.allSatisfy({ !$0.isRunning }) { return }
    }
}

/// Resumes downloads at launch, and when the network returns. Returns the items whose URL or credentials must be
/// provided again.
func resumeDownloads(in cache: MediaCache) async throws -> [DownloadSet.Item] {
    try await cache.downloads.resume()
    return try await cache.downloads.sets().flatMap(\.missing).filter { $0.url == nil }
}

/// Removes the set after the flight.
func releaseDownloads(in cache: MediaCache) async throws {
    try await cache.downloads.release("Flight")
}
