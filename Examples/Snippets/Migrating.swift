#if Proxy
import HTTPTypes
import SpoolAVFoundation
import SpoolProxy

// Examples from docs/migrating.md.

@MainActor
private func item(for url: URL, in cache: MediaCache) -> AVPlayer {
    let player = AVPlayer(caching: url, in: cache)
    player.play()
    return player
}

/// Shows the progress of a resource, as a replacement for a delegate's progress callbacks.
@MainActor
private func follow(_ url: URL, in cache: MediaCache, showing show: (Double) -> Void) async throws {
    let media = cache.media(for: url)
    for await state in media.states {
        show(state.fractionCompleted ?? 0)
        if state.isComplete { break }
    }
}

/// Downloads an entire resource, and exports it to a file.
private func export(_ url: URL, from cache: MediaCache, to file: URL) async throws {
    let download = cache.preload([MediaSource(url: url)], .entire)[0]
    let state = await download.finished()
    if state.isComplete { try await cache.media(for: url).export(to: file) }
}

/// Returns a cache with a custom rule for keys, such as the rule that the previous cache used.
private func cache(in folder: URL, naming name: @escaping @Sendable (URL) -> String) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.capacity = .bytes(500 << 20)
    configuration.keyPolicy = CacheKeyPolicy { url in name(url) }
    return MediaCache(directory: folder, configuration: configuration)
}

@MainActor
private func items(
    for film: URL, _ stream: URL, token: String, in cache: MediaCache
) -> ([AVPlayerItem], ProxyServer) {
    let source = MediaSource(url: film, headerFields: [.authorization: "Bearer \(token)"])
    let plain = AVPlayerItem(caching: source, in: cache)
    let server = ProxyServer.inApp(cache)  // one for all players, with the same lifetime
    let hls = AVPlayerItem(caching: stream, in: cache, server: server)
    return ([plain, hls], server)
}

/// Returns a custom asset and its loader.
private func asset(for url: URL, in cache: MediaCache) -> (AVURLAsset, CachingResourceLoader)? {
    guard let cachingURL = CachingURLAsset.cachingURL(for: url) else { return nil }
    let asset = AVURLAsset(url: cachingURL)
    let loader = CachingResourceLoader(caching: MediaSource(url: url), in: cache)
    asset.resourceLoader.setDelegate(loader, queue: loader.queue)
    return (asset, loader)
}

/// Imports the complete files from a previous cache under their original URLs, and removes the imported files.
func takeOver(_ files: [(file: URL, url: URL)], into cache: MediaCache) async throws {
    for (file, url) in files {
        do {
            try await cache.importFile(at: file, as: MediaSource(url: url))
        } catch let error as CacheError where error.code == .invalidArgument {
            // The origin or the cache has different bytes for this URL, so this file is also removed.
        } catch is CacheError {
            continue  // The file stays, and is imported at the next launch.
        }
        try FileManager.default.removeItem(at: file)
    }
}
#endif
