import Foundation

extension AVPlayerItem {
    /// How an asset's bytes get to libmpv: by itself, or through the delegate of the asset's loader.
    ///
    /// As with Apple's, the delegate is asked only for URLs that cannot be loaded otherwise.
    nonisolated static func source(of asset: AVAsset) -> ItemPlayback.Source? {
        guard let asset = asset as? AVURLAsset else { return nil }
        if asset.url.isFileURL { return .url(asset.url.path) }
        switch asset.url.scheme?.lowercased() {
        case "http", "https":
            return .url(asset.url.absoluteString)
        default:
            let stream = MediaStream(
                core: asset.resourceLoader.core, url: asset.url, policy: asset.resourceLoader.core.policy)
            return .stream(stream, name: asset.url.lastPathComponent)
        }
    }

    /// Loads the beginning of the item, ahead of its turn in a queue.
    func prebuffer() {
        if case .stream(let stream, _) = source { stream.prebuffer() }
    }
}
