public import Foundation

/// The identifier of a track within its asset.
public typealias CMPersistentTrackID = Int32

/// The kind of a track, as a QuickTime four-character code.
public struct AVMediaType: RawRepresentable, Sendable, Hashable {
    /// The four-character code.
    public let rawValue: String
    /// Creates a media type from its four-character code.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Video.
    public static let video = AVMediaType(rawValue: "vide")
    /// Audio.
    public static let audio = AVMediaType(rawValue: "soun")
    /// Text. This type is never reported on Linux; see ``subtitle``.
    public static let text = AVMediaType(rawValue: "text")
    /// Subtitles, and on Linux also text and closed captions.
    public static let subtitle = AVMediaType(rawValue: "sbtl")
    /// Closed captions. This type is never reported on Linux; see ``subtitle``.
    public static let closedCaption = AVMediaType(rawValue: "clcp")
}

/// The values of a track, as reported by the demuxer.
struct TrackValues: Sendable, Equatable {
    var trackID: CMPersistentTrackID
    var mediaType: AVMediaType
    /// The width in pixels.
    var width: Double = 0
    var height: Double = 0
    var bitsPerSecond: Float = 0
    var framesPerSecond: Float = 0
    var languageCode: String?
    var isEnabled = true
}

/// One track of an asset: video, audio or subtitles.
///
/// An asset's `load(.tracks)` and ``AVAsset/loadTracks(withMediaType:)`` return tracks whose values are already known,
/// so loading them neither waits nor fails. A value that the container does not provide is 0 or `nil`.
///
/// `@unchecked`: the compiler cannot check a class that may have subclasses. The stored properties never change, except
/// the weak reference, which is cleared atomically.
open class AVAssetTrack: NSObject, AVAsynchronousKeyValueLoading, @unchecked Sendable {
    /// The asset, or `nil` after the asset has been released.
    open var asset: AVAsset? { storedAsset }
    /// The identifier of the track within its asset, which is never 0.
    open var trackID: CMPersistentTrackID { values.trackID }
    /// The kind of the track.
    open var mediaType: AVMediaType { values.mediaType }

    private weak var storedAsset: AVAsset?
    let values: TrackValues

    init(_ values: TrackValues, of asset: AVAsset) {
        self.values = values
        storedAsset = asset
        super.init()
    }
}

extension AVPartialAsyncProperty where Root: AVAssetTrack {
    /// The size of the video in pixels, or zero if the track is not video.
    public static var naturalSize: AVAsyncProperty<Root, CGSize> {
        AVAsyncProperty(.track { CGSize(width: $0.width, height: $0.height) })
    }
    /// The average bit rate, in bits per second, or 0 if it is unknown.
    ///
    /// If the container provides the bit rates of all tracks except one, the remaining bit rate of the file is assigned
    /// to that track.
    public static var estimatedDataRate: AVAsyncProperty<Root, Float> { AVAsyncProperty(.track { $0.bitsPerSecond }) }
    /// The frame rate, in frames per second, or 0 if the track is not video or the container does not provide the rate.
    public static var nominalFrameRate: AVAsyncProperty<Root, Float> { AVAsyncProperty(.track { $0.framesPerSecond }) }
    /// The language code from the container (in MP4, a three-letter ISO 639-2 code), or `nil` if the container does not
    /// provide it.
    public static var languageCode: AVAsyncProperty<Root, String?> { AVAsyncProperty(.track { $0.languageCode }) }
    /// Whether the track is played by default.
    public static var isEnabled: AVAsyncProperty<Root, Bool> { AVAsyncProperty(.track { $0.isEnabled }) }
}
