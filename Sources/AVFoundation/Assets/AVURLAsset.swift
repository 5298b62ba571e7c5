// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// Media that can be played: the base class of ``AVURLAsset``.
///
/// Only an ``AVURLAsset`` loads values here: its duration, playability and tracks.
open class AVAsset: NSObject {
    /// Does nothing here. Apple's method cancels the loading of all values for all observers, while the requests of the
    /// resource loader continue.
    open func cancelLoading() {}

    /// Creates an asset. Only subclasses in this module call this initializer.
    override init() {
        super.init()
    }
}

/// An asset for the media at a URL, which a player item plays.
///
/// libmpv itself plays files and `http(s)` URLs. A URL with any other scheme plays only through a delegate of
/// ``resourceLoader``, as with Apple's AVFoundation. The asset references that delegate weakly.
///
/// Subclasses must be `Sendable`, so they restate `@unchecked Sendable` and give a reason.
///
/// `@unchecked`: all stored properties are constants. ``resourceLoader`` guards its state with a lock.
open class AVURLAsset: AVAsset, @unchecked Sendable {
    /// The URL, unchanged.
    public let url: URL
    /// The resource loader, which requests bytes from its delegate for URLs that cannot be loaded otherwise.
    public let resourceLoader: AVAssetResourceLoader
    /// The identifier of this asset's HTTP session.
    public let httpSessionIdentifier = UUID()

    /// AVFoundation's own storage for the asset. The value is always `nil` here.
    open var assetCache: AVAssetCache? { nil }

    let userAgent: String?
    let prefersPreciseTiming: Bool
    let values = AssetValues()

    /// Creates an asset for a URL. Nothing is loaded until a player receives an item for the asset.
    ///
    /// - Parameter options: Values for `AVURLAsset…Key` options. ``AVURLAssetHTTPUserAgentKey`` applies to `http(s)`
    ///   URLs, and ``AVURLAssetPreferPreciseDurationAndTimingKey`` to seeks. Other options have no effect.
    public init(url URL: URL, options: [String: Any]? = nil) {
        url = URL
        userAgent = options?[AVURLAssetHTTPUserAgentKey] as? String
        prefersPreciseTiming = options?[AVURLAssetPreferPreciseDurationAndTimingKey] as? Bool ?? false
        resourceLoader = AVAssetResourceLoader(core: ResourceLoaderCore())
        super.init()
        resourceLoader.core.setLoader(resourceLoader)
    }

    /// Cancels the requests that the resource loader's delegate is still serving.
    deinit {
        resourceLoader.core.cancelAll()
    }

    /// Returns the playable container formats, as uniform type identifiers.
    open class func audiovisualTypes() -> [AVFileType] {
        [.mov, .mp4, .m4v, .m4a, .mp3, .wav, .aiff, .aifc, .caf, .ac3, .eac3, .au, .mobile3GPP, .mobile3GPP2]
    }

    /// Returns the playable container formats, as media types.
    open class func audiovisualMIMETypes() -> [String] {
        [
            "video/mp4", "video/quicktime", "video/x-m4v", "video/3gpp", "video/3gpp2", "audio/mp4", "audio/x-m4a",
            "audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/aiff", "audio/x-aiff", "audio/x-caf",
            "audio/aac", "audio/ac3", "audio/eac3", "audio/basic", "application/vnd.apple.mpegurl",
        ]
    }

    /// Returns whether a resource of this media type can be played. Parameters (`; codecs=…`) are ignored.
    open class func isPlayableExtendedMIMEType(_ extendedMIMEType: String) -> Bool {
        let type = extendedMIMEType.prefix { $0 != ";" }
        return audiovisualMIMETypes().contains(type.trimmingCharacters(in: .whitespaces).lowercased())
    }
}

/// AVFoundation's own storage for an asset, which does not exist on Linux.
open class AVAssetCache: NSObject {
    /// Whether the asset can be played without a network connection.
    open var isPlayableOffline: Bool { false }

    override init() {
        super.init()
    }
}

// This extension exists only on Linux, like the log itself; see `AVAssetResourceLoader.requestLog`.

extension AVURLAsset {
    /// All loading requests of the asset, oldest first. Linux only.
    package var requestLog: [AVAssetResourceLoader.LoggedRequest] { resourceLoader.requestLog }

    /// All violations of the contract by the loader's delegate, oldest first. Linux only.
    package var contractViolations: [AVAssetResourceLoader.ContractViolation] { resourceLoader.contractViolations }
}

/// Whether to read more of the file for exact duration and timing (`Bool`).
public let AVURLAssetPreferPreciseDurationAndTimingKey = "AVURLAssetPreferPreciseDurationAndTimingKey"
/// The restrictions on references to other files that an asset may follow (`UInt`).
public let AVURLAssetReferenceRestrictionsKey = "AVURLAssetReferenceRestrictionsKey"
/// Cookies to send to `http(s)` URLs (`[HTTPCookie]`).
public let AVURLAssetHTTPCookiesKey = "AVURLAssetHTTPCookiesKey"
/// Whether the cellular network may be used (`Bool`).
public let AVURLAssetAllowsCellularAccessKey = "AVURLAssetAllowsCellularAccessKey"
/// Whether expensive networks may be used (`Bool`).
public let AVURLAssetAllowsExpensiveNetworkAccessKey = "AVURLAssetAllowsExpensiveNetworkAccessKey"
/// Whether constrained networks may be used (`Bool`).
public let AVURLAssetAllowsConstrainedNetworkAccessKey = "AVURLAssetAllowsConstrainedNetworkAccessKey"
/// The `User-Agent` of `http(s)` requests (`String`).
public let AVURLAssetHTTPUserAgentKey = "AVURLAssetHTTPUserAgentKey"
/// A media type that overrides the server's media type (`String`).
public let AVURLAssetOverrideMIMETypeKey = "AVURLAssetOverrideMIMETypeKey"
/// The initiator of the requests, for the system's privacy report (`Int`).
public let AVURLAssetURLRequestAttributionKey = "AVURLAssetURLRequestAttributionKey"
/// The identifier of the asset's session (`UUID`).
public let AVURLAssetPrimarySessionIdentifierKey = "AVURLAssetPrimarySessionIdentifierKey"

/// A container format, identified by its uniform type identifier on Apple's systems.
public struct AVFileType: RawRepresentable, Sendable, Hashable {
    /// The uniform type identifier, such as `public.mpeg-4`.
    public let rawValue: String
    /// Creates a format from its uniform type identifier.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Creates a format from its uniform type identifier.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// `.mov`
    public static let mov = AVFileType("com.apple.quicktime-movie")
    /// `.mp4`
    public static let mp4 = AVFileType("public.mpeg-4")
    /// `.m4v`
    public static let m4v = AVFileType("com.apple.m4v-video")
    /// `.m4a`
    public static let m4a = AVFileType("com.apple.m4a-audio")
    /// `.mp3`
    public static let mp3 = AVFileType("public.mp3")
    /// `.wav`
    public static let wav = AVFileType("com.microsoft.waveform-audio")
    /// `.aif`, `.aiff`
    public static let aiff = AVFileType("public.aiff-audio")
    /// `.aifc`
    public static let aifc = AVFileType("public.aifc-audio")
    /// `.caf`
    public static let caf = AVFileType("com.apple.coreaudio-format")
    /// `.ac3`
    public static let ac3 = AVFileType("public.ac3-audio")
    /// `.eac3`
    public static let eac3 = AVFileType("public.enhanced-ac3-audio")
    /// `.au`, `.snd`
    public static let au = AVFileType("public.au-audio")
    /// `.3gp`
    public static let mobile3GPP = AVFileType("public.3gpp")
    /// `.3g2`
    public static let mobile3GPP2 = AVFileType("public.3gpp2")
}
