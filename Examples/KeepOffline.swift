import SpoolAVFoundation

/// Keeps media for a flight: in one set, pinned from the start, after what is played.
func keep(_ urls: [URL], in cache: MediaCache, show: (DownloadSet) -> Void) async throws {
    try await cache.downloads.add(urls.map { MediaSource(url: $0) }, to: "Flight")
    for await set in cache.downloads.states(of: "Flight") {
        show(set)
        if set.items.allSatisfy({ !$0.isRunning }) { return }
    }
}

/// When the app starts, and when the network is back: goes on, and tells what needs its URL or credentials again.
func goOn(in cache: MediaCache) async throws -> [DownloadSet.Item] {
    try await cache.downloads.resume()
    return try await cache.downloads.sets().flatMap(\.missing).filter { $0.url == nil }
}

/// After the flight.
func letGo(in cache: MediaCache) async throws {
    try await cache.downloads.release("Flight")
}
