public import Foundation

/// Whether a value of an asset is known.
public enum AVKeyValueStatus: Int, Sendable {
    /// Nobody has asked for it.
    case unknown = 0
    /// It is being found out.
    case loading = 1
    /// It is known.
    case loaded = 2
    /// It can't be found out.
    case failed = 3
    /// Loading was cancelled; never said here.
    case cancelled = 4
}

/// The keys of values are `duration`, `playable` and `tracks`: there is no metadata.
extension AVURLAsset {
    /// Loads values and calls back, on any thread, when they are known or can't be.
    public func loadValuesAsynchronously(forKeys keys: [String], completionHandler: (@Sendable () -> Void)? = nil) {
        loadValues { _ in completionHandler?() }
    }

    /// Whether a value is known.
    ///
    /// - Parameter error: where to put why it can't be.
    public func statusOfValue(forKey key: String, error: UnsafeMutablePointer<NSError?>?) -> AVKeyValueStatus {
        switch values.result {
        case nil: return values.isLoading ? .loading : .unknown
        case .success: return ["duration", "playable", "tracks"].contains(key) ? .loaded : .unknown
        case .failure(let cause):
            error?.pointee = cause as NSError
            return .failed
        }
    }

    /// How long the media is; loads it and blocks the thread if that is not known. Deprecated by Apple, for that reason.
    @available(*, deprecated, message: "Use load(.duration) instead")
    public var duration: CMTime { waitForValues()?.time ?? .invalid }

    /// Its tracks; none if it can't be opened. Loads them and blocks the thread if they are not known. Deprecated by
    /// Apple, for that reason.
    @available(*, deprecated, message: "Use load(.tracks) instead")
    public var tracks: [AVAssetTrack] { waitForValues()?.tracks ?? [] }

    /// The tracks of a media type; see ``tracks``. Deprecated by Apple: it may block.
    @available(*, deprecated, message: "Use loadTracks(withMediaType:) instead")
    public func tracks(withMediaType mediaType: AVMediaType) -> [AVAssetTrack] {
        (waitForValues()?.tracks ?? []).filter { $0.mediaType == mediaType }
    }

    private func waitForValues() -> AssetValues.Values? {
        let known = DispatchSemaphore(value: 0)
        loadValuesAsynchronously(forKeys: ["duration"]) { known.signal() }
        known.wait()
        guard case .success(let values) = values.result else { return nil }
        return values
    }

    /// What opening the media tells.
    ///
    /// - Throws: why it can't be opened.
    func loadedValues() async throws -> AssetValues.Values {
        try await withCheckedThrowingContinuation { continuation in
            loadValues { continuation.resume(with: $0) }
        }
    }

    private func loadValues(_ body: @escaping @Sendable (Result<AssetValues.Values, any Error>) -> Void) {
        values.load(by: { await self.openedValues() }, body)
    }

    /// Opens the media without playing it.
    private func openedValues() async -> Result<AssetValues.Values, any Error> {
        let item = PlayerItemState()
        guard let source = AVPlayerItem.source(of: self) else { return .failure(AVError(.unknown)) }
        let options = PlaybackOptions(
            headless: .untimed, isCustomStream: source.isStream, isFile: url.isFileURL, userAgent: userAgent,
            findsTracks: true, isPrecise: prefersPreciseTiming)
        if let playback = ItemPlayback(source: source, item: item, options: options) {
            for await event in playback.events where [.ready, .failed, .closed].contains(event) { break }
            playback.shutDown(cancelling: true)
        }
        if item.status == .readyToPlay {
            let tracks = item.tracks.map { AVAssetTrack($0, of: self) }
            return .success(AssetValues.Values(duration: item.duration, tracks: tracks))
        }
        return .failure(item.error ?? AVError(.unknown))
    }
}
