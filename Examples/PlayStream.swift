import SpoolAVFoundation
import SpoolProxy

/// A player for HLS and any other media: HLS goes through a server in the app, the rest needs none. One server is enough.
@MainActor
func player(for url: URL, in cache: MediaCache, by server: ProxyServer) -> CachingPlayer {
    let player = CachingPlayer(in: cache, server: server)
    player.play(url)
    return player
}

/// The server, which listens when it is first needed. Of variants that need more than 4 Mbit/s the player hears nothing.
func server(over cache: MediaCache) -> ProxyServer {
    ProxyServer.inApp(cache, maximumBitRate: 4_000_000)
}

/// Brings a whole stream, so that it plays without a network.
func download(_ stream: URL, to cache: MediaCache, show: @escaping @Sendable (Double) -> Void) async throws {
    let variant = HLSVariantSelection.bandwidth(atMost: 4_000_000)
    try await HLSDownloader(MediaSource(url: stream), in: cache, variant: variant).run { show($0.fractionCompleted) }
}
