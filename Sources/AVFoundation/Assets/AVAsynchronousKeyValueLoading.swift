/// A value of an asset or a track that has to be loaded, whatever its type.
///
/// `@unchecked`, since a class that may have subclasses can't be checked; it stores nothing, and they are of this module.
open class AVPartialAsyncProperty<Root>: @unchecked Sendable {
    init() {}
}

/// A value of an asset or a track that has to be loaded.
///
/// `@unchecked`, restated from the superclass: the one stored property is a constant.
public final class AVAsyncProperty<Root, Value>: AVPartialAsyncProperty<Root>, @unchecked Sendable {
    enum Source: Sendable {
        case asset(@Sendable (AssetValues.Values) -> Value)
        case track(@Sendable (TrackValues) -> Value)
    }

    let source: Source

    init(_ source: Source) { self.source = source }
}

extension AVPartialAsyncProperty where Root: AVAsset {
    /// How long the media is.
    public static var duration: AVAsyncProperty<Root, CMTime> { AVAsyncProperty(.asset { $0.time }) }
    /// Whether it can be played: true of whatever could be opened.
    public static var isPlayable: AVAsyncProperty<Root, Bool> { AVAsyncProperty(.asset { _ in true }) }
    /// What it consists of: moving pictures, sound, subtitles.
    public static var tracks: AVAsyncProperty<Root, [AVAssetTrack]> { AVAsyncProperty(.asset { $0.tracks }) }
}

/// Something whose values are found out by opening media: an asset, or a track of one.
public protocol AVAsynchronousKeyValueLoading: AnyObject {}

extension AVAsynchronousKeyValueLoading {
    /// Loads a value; opening the media does it, with loading requests like a player's, once for all values.
    ///
    /// - Throws: why the media can't be opened.
    public func load<Value>(_ property: AVAsyncProperty<Self, Value>) async throws -> Value {
        switch property.source {
        case .asset(let value):
            guard let asset = self as? AVURLAsset else { throw AVError(.unknown, detail: "the asset has no URL") }
            return value(try await asset.loadedValues())
        case .track(let value):
            // Only tracks have such properties.
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
    /// Loads the tracks of a media type; none if it has none.
    ///
    /// - Throws: why the media can't be opened.
    public func loadTracks(withMediaType mediaType: AVMediaType) async throws -> [AVAssetTrack] {
        try await load(.tracks).filter { $0.mediaType == mediaType }
    }

    /// Loads the track of an identifier; nil if there is none.
    ///
    /// - Throws: why the media can't be opened.
    public func loadTrack(withTrackID trackID: CMPersistentTrackID) async throws -> AVAssetTrack? {
        try await load(.tracks).first { $0.trackID == trackID }
    }
}

extension AssetValues.Values {
    var time: CMTime { duration.map { CMTime(seconds: $0, preferredTimescale: 1_000_000) } ?? .indefinite }
}
