import Foundation
import Synchronization

/// A property of an asset or a track that is loaded asynchronously, regardless of the type of its value.
///
/// `@unchecked`: the compiler cannot check a class that may have subclasses. This class stores nothing, and its
/// subclasses are in this module.
open class AVPartialAsyncProperty<Root>: @unchecked Sendable {
    init() {}
}

/// A property of an asset or a track that is loaded asynchronously.
///
/// `@unchecked Sendable` is restated from the superclass. The only stored property is a constant.
public final class AVAsyncProperty<Root, Value>: AVPartialAsyncProperty<Root>, @unchecked Sendable {
    enum Source: Sendable {
        case asset(@Sendable (AssetValues.Values) -> Value)
        case track(@Sendable (TrackValues) -> Value)
    }

    let source: Source

    init(_ source: Source) { self.source = source }
}

extension AVPartialAsyncProperty where Root: AVAsset {
    /// The duration of the media.
    public static var duration: AVAsyncProperty<Root, CMTime> { AVAsyncProperty(.asset { $0.time }) }
    /// Whether the media can be played. The value is `true` for all media that can be opened.
    public static var isPlayable: AVAsyncProperty<Root, Bool> { AVAsyncProperty(.asset { _ in true }) }
    /// The tracks of the media.
    public static var tracks: AVAsyncProperty<Root, [AVAssetTrack]> { AVAsyncProperty(.asset { $0.tracks }) }
}

/// An object whose values are loaded by opening media: an asset, or a track of an asset.
public protocol AVAsynchronousKeyValueLoading: AnyObject {}

extension AVAsynchronousKeyValueLoading {
    /// Loads a value. The media is opened once for all values of the asset, with loading requests like those of a
    /// player.
    ///
    /// - Throws: The error that occurred when the media was opened.
    public func load<Value>(_ property: AVAsyncProperty<Self, Value>) async throws -> Value {
        switch property.source {
        case .asset(let value):
            guard let asset = self as? AVURLAsset else { throw AVError(.unknown, detail: "the asset has no URL") }
            return value(try await asset.loadedValues())
        case .track(let value):
            // Only tracks have these properties.
            guard let track = self as? AVAssetTrack else { throw AVError(.unknown) }
            return value(track.values)
        }
    }

    /// Loads two values; see ``load(_:)``.
    public func load<First, Second>(
        _ first: AVAsyncProperty<Self, First>, _ second: AVAsyncProperty<Self, Second>
    ) async throws -> (First, Second) {
        (try await load(first), try await load(second))
    }
}

extension AVAsset: AVAsynchronousKeyValueLoading {
    /// Loads the tracks of a media type.
    ///
    /// - Returns: The tracks, or an empty array if no track has this media type.
    /// - Throws: The error that occurred when the media was opened.
    public func loadTracks(withMediaType mediaType: AVMediaType) async throws -> [AVAssetTrack] {
        try await load(.tracks).filter { $0.mediaType == mediaType }
    }

    /// Loads the track with an identifier.
    ///
    /// - Returns: The track, or `nil` if no track has this identifier.
    /// - Throws: The error that occurred when the media was opened.
    public func loadTrack(withTrackID trackID: CMPersistentTrackID) async throws -> AVAssetTrack? {
        try await load(.tracks).first { $0.trackID == trackID }
    }
}

extension AssetValues.Values {
    var time: CMTime { duration.map { CMTime(seconds: $0, preferredTimescale: 1_000_000) } ?? .indefinite }
}

/// The values of an asset, which libmpv determines by opening the asset once, without playing it.
final class AssetValues: Sendable {
    struct Values: Sendable {
        /// The duration in seconds, or `nil` if the media does not provide it.
        var duration: Double?
        var tracks: [AVAssetTrack] = []
    }

    private enum State {
        case unknown
        case loading(waiters: [@Sendable (Result<Values, any Error>) -> Void])
        case known(Result<Values, any Error>)
    }

    private let state = Mutex(State.unknown)

    /// The loaded values, or `nil` before they are loaded.
    var result: Result<Values, any Error>? {
        state.withLock { if case .known(let result) = $0 { result } else { nil } }
    }
    var isLoading: Bool { state.withLock { if case .loading = $0 { true } else { false } } }

    /// Calls `body` once the values are loaded or have failed to load, or immediately if this has already happened. The
    /// first call runs `open` to load the values.
    func load(
        by open: @escaping @Sendable () async -> Result<Values, any Error>,
        _ body: @escaping @Sendable (Result<Values, any Error>) -> Void
    ) {
        let (known, isFirst) = state.withLock { state -> (Result<Values, any Error>?, Bool) in
            switch state {
            case .known(let result): return (result, false)
            case .unknown:
                state = .loading(waiters: [body])
                return (nil, true)
            case .loading(let waiters):
                state = .loading(waiters: waiters + [body])
                return (nil, false)
            }
        }
        if let known { return body(known) }
        guard isFirst else { return }
        Task {
            let result = await open()
            let waiters = state.withLock { state in
                defer { state = .known(result) }
                if case .loading(let waiters) = state { return waiters }
                return []
            }
            for waiter in waiters { waiter(result) }
        }
    }
}
