public import Foundation

/// The loading state of an asset's value.
public enum AVKeyValueStatus: Int, Sendable {
    /// The value has not been requested yet.
    case unknown = 0
    /// The value is being loaded.
    case loading = 1
    /// The value is loaded.
    case loaded = 2
    /// The value cannot be loaded.
    case failed = 3
    /// Loading was cancelled. This status is never reported here.
    case cancelled = 4
}

/// The loading of values by key. The keys are `duration`, `playable` and `tracks`. Metadata is not available.
extension AVURLAsset {
    /// Loads values, and calls the handler when they are loaded or have failed to load. The handler may be called on
    /// any thread.
    public func loadValuesAsynchronously(forKeys keys: [String], completionHandler: (@Sendable () -> Void)? = nil) {
        loadValues { _ in completionHandler?() }
    }

    /// Returns the loading state of a value.
    ///
    /// - Parameter error: On return, contains the error if the value cannot be loaded.
    public func statusOfValue(forKey key: String, error: UnsafeMutablePointer<NSError?>?) -> AVKeyValueStatus {
        switch values.result {
        case nil: return values.isLoading ? .loading : .unknown
        case .success: return ["duration", "playable", "tracks"].contains(key) ? .loaded : .unknown
        case .failure(let cause):
            error?.pointee = cause as NSError
            return .failed
        }
    }

    /// The duration. If it is not loaded yet, reading this property loads it and blocks the thread. For this reason,
    /// Apple has deprecated the property.
    @available(*, deprecated, message: "Use load(.duration) instead")
    public var duration: CMTime { waitForValues()?.time ?? .invalid }

    /// The tracks, or an empty array if the media cannot be opened. If they are not loaded yet, reading this property
    /// loads them and blocks the thread. For this reason, Apple has deprecated the property.
    @available(*, deprecated, message: "Use load(.tracks) instead")
    public var tracks: [AVAssetTrack] { waitForValues()?.tracks ?? [] }

    /// Returns the tracks of a media type; see ``tracks``. Apple has deprecated the method because it may block.
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

    /// Opens the media if necessary, and returns its values.
    ///
    /// - Throws: The error that occurred when the media was opened.
    func loadedValues() async throws -> AssetValues.Values {
        try await withCheckedThrowingContinuation { continuation in
            loadValues { continuation.resume(with: $0) }
        }
    }

    private func loadValues(_ body: @escaping @Sendable (Result<AssetValues.Values, any Error>) -> Void) {
        values.load(by: { await self.openedValues() }, body)
    }

    /// Opens the media without playing it, and returns its values.
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
