import HTTPTypes
import SpoolAVFoundation
import SpoolProxy

// Pieces of docs/migrating.md.

@MainActor
private func item(for url: URL, in cache: MediaCache) -> AVPlayer {
    let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache))
    player.enableCaching()
    player.play()
    return player
}

/// What a delegate was told.
@MainActor
private func follow(_ url: URL, in cache: MediaCache, showing show: (Double) -> Void) async throws {
    let media = cache.media(for: url)
    for await state in media.states {
        show(state.fractionCompleted ?? 0)
        if state.isComplete { break }
    }
}

/// A file of one's own, once every byte is there.
private func export(_ url: URL, from cache: MediaCache, to file: URL) async throws {
    let download = cache.preload([MediaSource(url: url)], .whole)[0]
    let state = await download.finished()
    if state.isComplete { try await cache.media(for: url).export(to: file) }
}

/// Names by a rule of one's own, where the former cache had one.
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
    let server = ProxyServer.inApp(cache)  // one for all players, kept as long as they
    let hls = AVPlayerItem(caching: stream, in: cache, server: server)
    return ([plain, hls], server)
}

/// A loader of one's own assets.
private func asset(for url: URL, in cache: MediaCache) -> (AVURLAsset, CachingResourceLoader)? {
    guard let cachingURL = CachingURLAsset.cachingURL(for: url) else { return nil }
    let asset = AVURLAsset(url: cachingURL)
    let loader = CachingResourceLoader(caching: MediaSource(url: url), in: cache)
    asset.resourceLoader.setDelegate(loader, queue: loader.queue)
    return (asset, loader)
}

/// Takes in the complete files of a former cache, with the URLs that they came from, and removes those that are in.
func takeOver(_ files: [(file: URL, url: URL)], into cache: MediaCache) async throws {
    for (file, url) in files {
        do {
            try await cache.importFile(at: file, as: MediaSource(url: url))
        } catch let error as CacheError where error.code == .invalidArgument {
            // It is not what the origin has, or other bytes are stored: it goes, too.
        } catch is CacheError {
            continue  // It stays for the next launch.
        }
        try FileManager.default.removeItem(at: file)
    }
}
