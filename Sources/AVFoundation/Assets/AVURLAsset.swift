public import Foundation

/// A film or a song at a URL: the thing that a player item plays.
///
/// Files and `http(s)` URLs are played by libmpv itself. A URL with any other scheme can be played only
/// through a delegate of ``resourceLoader``, as with Apple's AVFoundation. The asset holds that delegate weakly.
///
/// Subclasses that are used from Swift must be `Sendable` (they restate `@unchecked Sendable` and say why).
///
/// `@unchecked`: all stored properties are constants; ``resourceLoader`` guards its state with a lock.
open class AVURLAsset: AVAsset, @unchecked Sendable {
    /// The URL, as it was given.
    public let url: URL
    /// Asks the delegate for bytes of URLs that cannot be loaded otherwise.
    public let resourceLoader: AVAssetResourceLoader
    /// Tells this asset's HTTP session from others'.
    public let httpSessionIdentifier = UUID()

    /// AVFoundation's own storage for the asset: none here.
    open var assetCache: AVAssetCache? { nil }

    let userAgent: String?
    let prefersPreciseTiming: Bool
    let values = AssetValues()

    /// An asset for the URL. Nothing is loaded until an item of it gets into a player.
    ///
    /// - Parameter options: `AVURLAsset…Key`s. ``AVURLAssetHTTPUserAgentKey`` is honoured for `http(s)`, and
    ///   ``AVURLAssetPreferPreciseDurationAndTimingKey`` for seeks; the others are accepted and change nothing.
    public init(url URL: URL, options: [String: Any]? = nil) {
        url = URL
        userAgent = options?[AVURLAssetHTTPUserAgentKey] as? String
        prefersPreciseTiming = options?[AVURLAssetPreferPreciseDurationAndTimingKey] as? Bool ?? false
        resourceLoader = AVAssetResourceLoader(core: ResourceLoaderCore())
        super.init()
        resourceLoader.core.setLoader(resourceLoader)
    }

    /// Cancels what the loader's delegate still works on.
    deinit {
        resourceLoader.core.cancelAll()
    }

    /// The container formats that play, by their uniform type identifiers.
    open class func audiovisualTypes() -> [AVFileType] {
        [.mov, .mp4, .m4v, .m4a, .mp3, .wav, .aiff, .aifc, .caf, .ac3, .eac3, .au, .mobile3GPP, .mobile3GPP2]
    }

    /// The container formats that play, by their media types.
    open class func audiovisualMIMETypes() -> [String] {
        [
            "video/mp4", "video/quicktime", "video/x-m4v", "video/3gpp", "video/3gpp2", "audio/mp4", "audio/x-m4a",
            "audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/aiff", "audio/x-aiff", "audio/x-caf",
            "audio/aac", "audio/ac3", "audio/eac3", "audio/basic", "application/vnd.apple.mpegurl",
        ]
    }

    /// Whether a resource of this media type can be played, its parameters (`; codecs=…`) left aside.
    open class func isPlayableExtendedMIMEType(_ extendedMIMEType: String) -> Bool {
        let type = extendedMIMEType.prefix { $0 != ";" }
        return audiovisualMIMETypes().contains(type.trimmingCharacters(in: .whitespaces).lowercased())
    }
}

/// AVFoundation's own storage for an asset; there is none on Linux.
open class AVAssetCache: NSObject {
    /// Whether the asset plays without a network.
    open var isPlayableOffline: Bool { false }

    override init() {
        super.init()
    }
}
