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

/// A value of an asset that has to be loaded, whatever its type.
///
/// `@unchecked`, since a class that may have subclasses can't be checked; it stores nothing, and they are of this module.
open class AVPartialAsyncProperty<Root>: @unchecked Sendable {
    init() {}
}

/// A value of an asset that has to be loaded.
///
/// `@unchecked`, restated from the superclass: the one stored property is a constant.
public final class AVAsyncProperty<Root, Value>: AVPartialAsyncProperty<Root>, @unchecked Sendable {
    let value: @Sendable (AssetValues.Values) -> Value

    init(_ value: @escaping @Sendable (AssetValues.Values) -> Value) { self.value = value }
}

extension AVPartialAsyncProperty where Root: AVAsset {
    /// How long the media is.
    public static var duration: AVAsyncProperty<Root, CMTime> { AVAsyncProperty { $0.time } }
    /// Whether it can be played: true of whatever could be opened.
    public static var isPlayable: AVAsyncProperty<Root, Bool> { AVAsyncProperty { _ in true } }
}

extension AssetValues.Values {
    var time: CMTime { duration.map { CMTime(seconds: $0, preferredTimescale: 1_000_000) } ?? .indefinite }
}

/// The keys of values are `duration` and `playable`: there are no tracks, and no metadata.
extension AVURLAsset {
    /// Loads a value; opening the media does it, with loading requests like a player's.
    ///
    /// - Throws: why the media can't be opened.
    public func load<Value>(_ property: AVAsyncProperty<AVURLAsset, Value>) async throws -> Value {
        let values = try await withCheckedThrowingContinuation { continuation in
            loadValues { continuation.resume(with: $0) }
        }
        return property.value(values)
    }

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
        case .success: return ["duration", "playable"].contains(key) ? .loaded : .unknown
        case .failure(let cause):
            error?.pointee = cause as NSError
            return .failed
        }
    }

    /// How long the media is; loads it and blocks the thread if that is not known. Deprecated by Apple, for that reason.
    @available(*, deprecated, message: "Use load(.duration) instead")
    public var duration: CMTime {
        let known = DispatchSemaphore(value: 0)
        loadValuesAsynchronously(forKeys: ["duration"]) { known.signal() }
        known.wait()
        guard case .success(let values) = values.result else { return .invalid }
        return values.time
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
            isPrecise: prefersPreciseTiming)
        if let playback = ItemPlayback(source: source, item: item, options: options) {
            for await event in playback.events where [.ready, .failed, .closed].contains(event) { break }
            playback.shutDown(cancelling: true)
        }
        if item.status == .readyToPlay { return .success(AssetValues.Values(duration: item.duration)) }
        return .failure(item.error ?? AVError(.unknown))
    }
}
