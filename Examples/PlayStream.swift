import SpoolAVFoundation
import SpoolProxy

/// A server inside the app, by which HLS plays through the cache; one for all players, kept as long as they.
func server(over cache: MediaCache) async throws -> ProxyServer {
    var configuration = ProxyConfiguration()
    configuration.port = 0
    let server = try ProxyServer(cache: cache, configuration: configuration)
    try await server.start()
    return server
}

/// Plays HLS or any other media through the cache: HLS by the server, the rest without it.
@MainActor
func player(for url: URL, in cache: MediaCache, by server: ProxyServer) -> AVPlayer {
    let player = AVPlayer(playerItem: AVPlayerItem(caching: url, in: cache, server: server))
    player.enableCaching()
    return player
}

/// Brings a whole stream, so that it plays without a network.
func download(_ stream: URL, to cache: MediaCache, show: @escaping @Sendable (Double) -> Void) async throws {
    try await HLSDownloader(MediaSource(url: stream), in: cache).run { show($0.fractionCompleted) }
}
