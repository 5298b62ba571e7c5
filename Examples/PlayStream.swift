#if Proxy
import SpoolAVFoundation
import SpoolProxy

/// Returns a player for HLS and other media. HLS requires a server in the app. One server is sufficient for all
/// players.
@MainActor
func player(for url: URL, in cache: MediaCache, by server: ProxyServer) -> CachingPlayer {
    let player = CachingPlayer(in: cache, server: server)
    player.play(url)
    return player
}

/// Returns the server, which starts when it is first used. It removes variants above 4 Mbit/s from playlists.
func server(over cache: MediaCache) -> ProxyServer {
    ProxyServer.inApp(cache, maximumBitRate: 4_000_000)
}

/// Downloads a whole stream, so that it plays without a network.
func download(_ stream: URL, to cache: MediaCache, show: @escaping @Sendable (Double) -> Void) async throws {
    let variant = HLSVariantSelection.bandwidth(atMost: 4_000_000)
    try await HLSDownloader(MediaSource(url: stream), in: cache, variant: variant).run { show($0.fractionCompleted) }
}
#endif
