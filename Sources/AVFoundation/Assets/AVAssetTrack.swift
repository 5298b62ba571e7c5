public import Foundation

/// Identifies a track within its asset.
public typealias CMPersistentTrackID = Int32

/// What a track holds, by the four letters of QuickTime files.
public struct AVMediaType: RawRepresentable, Sendable, Hashable {
    /// The four letters.
    public let rawValue: String
    /// A media type from its four letters.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Moving pictures.
    public static let video = AVMediaType(rawValue: "vide")
    /// Sound.
    public static let audio = AVMediaType(rawValue: "soun")
    /// Text; never said here, see ``subtitle``.
    public static let text = AVMediaType(rawValue: "text")
    /// Subtitles of any kind.
    public static let subtitle = AVMediaType(rawValue: "sbtl")
    /// Closed captions; never said here, see ``subtitle``.
    public static let closedCaption = AVMediaType(rawValue: "clcp")
}

/// What a demuxer says of a track.
struct TrackValues: Sendable, Equatable {
    var trackID: CMPersistentTrackID
    var mediaType: AVMediaType
    /// Pixels.
    var width: Double = 0
    var height: Double = 0
    var bitsPerSecond: Float = 0
    var framesPerSecond: Float = 0
    var languageCode: String?
    var isEnabled = true
}

/// One of the things that an asset consists of: a moving picture, a sound, subtitles.
///
/// Got from an asset's `load(.tracks)` or ``AVAsset/loadTracks(withMediaType:)``. Its values are known by then: loading
/// them neither waits nor fails. They are what the container says; 0 or nil where it does not.
///
/// `@unchecked`: a class that may have subclasses can't be checked; its stored properties never change, but for the weak
/// reference, which is cleared atomically.
open class AVAssetTrack: NSObject, AVAsynchronousKeyValueLoading, @unchecked Sendable {
    /// The asset, as long as someone keeps it.
    open var asset: AVAsset? { storedAsset }
    /// Tells it from the asset's other tracks; not 0.
    open var trackID: CMPersistentTrackID { values.trackID }
    /// What it holds.
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
    /// The size of the picture in pixels; zero for what is no picture.
    public static var naturalSize: AVAsyncProperty<Root, CGSize> {
        AVAsyncProperty(.track { CGSize(width: $0.width, height: $0.height) })
    }
    /// Bits in a second, on average; where the container says it of all tracks but one, the last one's is what is left of the
    /// file's. 0 if that can't be told.
    public static var estimatedDataRate: AVAsyncProperty<Root, Float> { AVAsyncProperty(.track { $0.bitsPerSecond }) }
    /// Pictures in a second; 0 for what is no picture, or if the container does not say.
    public static var nominalFrameRate: AVAsyncProperty<Root, Float> { AVAsyncProperty(.track { $0.framesPerSecond }) }
    /// The language as the container writes it, in MP4 three letters of ISO 639-2; nil if it does not say.
    public static var languageCode: AVAsyncProperty<Root, String?> { AVAsyncProperty(.track { $0.languageCode }) }
    /// Whether it is played unless another is chosen.
    public static var isEnabled: AVAsyncProperty<Root, Bool> { AVAsyncProperty(.track { $0.isEnabled }) }
}
