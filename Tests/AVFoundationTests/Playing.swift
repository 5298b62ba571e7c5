import AVFoundation
import Foundation
import Testing

/// An item and its headless player.
@MainActor
struct Playing {
    let asset: AVURLAsset
    let item: AVPlayerItem
    let player = AVPlayer()
    /// The delegate, which is retained here because assets reference it weakly.
    private let delegate: (any AVAssetResourceLoaderDelegate)?

    init(_ asset: AVURLAsset, speed: Double? = nil) {
        self.asset = asset
        delegate = asset.resourceLoader.delegate
        item = AVPlayerItem(asset: asset)
        player.headless = AVPlayer.HeadlessMode(speed: speed)
    }

    init(
        _ delegate: any AVAssetResourceLoaderDelegate, queue: DispatchQueue, name: String = "media",
        speed: Double? = nil, setUp: (AVAssetResourceLoader) -> Void = { _ in }
    ) {
        let asset = AVURLAsset(url: URL(string: "memory://test/\(name)")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: queue)
        setUp(asset.resourceLoader)
        self.init(asset, speed: speed)
    }

    init(
        _ delegate: MemoryDelegate, name: String = "media", speed: Double? = nil,
        setUp: (AVAssetResourceLoader) -> Void = { _ in }
    ) {
        self.init(delegate, queue: delegate.queue, name: name, speed: speed, setUp: setUp)
    }

    /// Makes the item the player's current item, and waits until it is ready to play or has failed.
    func load() async {
        await news(of: .AVPlayerItemStatusDidChange) { player.replaceCurrentItem(with: item) }
    }

    /// Plays until the end or a failure. Returns whether playback reached the end.
    func playToEnd() async -> Bool {
        await end { player.play() }
    }

    func end(after action: () -> Void) async -> Bool {
        guard item.status != .failed else { return false }
        let ends: [Notification.Name] = [.AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime]
        return await Listening.first(of: ends, item, action) == .AVPlayerItemDidPlayToEndTime
    }

    /// Loads the item, seeks back and forth within its first ten seconds, plays it to the end, and checks that the
    /// contract is not violated.
    func checkSeeks() async {
        await load()
        for target in [9.0, 2.0, 6.5, 0.0, 10.0] {
            #expect(await player.seek(to: CMTime(seconds: target, preferredTimescale: 600)))
            #expect(abs(item.currentTime().seconds - target) < 0.5)
        }
        #expect(await playToEnd())
        #expect(asset.contractViolations == [])
    }

    func news(of name: Notification.Name, after action: () -> Void) async {
        _ = await Listening.first(of: [name], item, action)
    }
}

/// Functions that wait for the first of the given notifications from an item or a player.
@MainActor
enum Listening {
    static func first(
        of names: [Notification.Name], _ sender: NSObject, _ action: () -> Void
    ) async -> Notification.Name {
        let (stream, continuation) = AsyncStream<Notification.Name>.makeStream()
        let tokens = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: sender, queue: nil) { _ in
                continuation.yield(name)
            }
        }
        defer { tokens.forEach(NotificationCenter.default.removeObserver) }
        action()
        var iterator = stream.makeAsyncIterator()
        return await iterator.next() ?? Notification.Name("none")
    }
}
