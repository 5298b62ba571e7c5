// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// Whether exact duration and timing are worth reading more of the file for (`Bool`).
public let AVURLAssetPreferPreciseDurationAndTimingKey = "AVURLAssetPreferPreciseDurationAndTimingKey"
/// Which references to other files an asset may follow (`UInt`).
public let AVURLAssetReferenceRestrictionsKey = "AVURLAssetReferenceRestrictionsKey"
/// Cookies to send along to `http(s)` URLs (`[HTTPCookie]`).
public let AVURLAssetHTTPCookiesKey = "AVURLAssetHTTPCookiesKey"
/// Whether the cellular network may be used (`Bool`).
public let AVURLAssetAllowsCellularAccessKey = "AVURLAssetAllowsCellularAccessKey"
/// Whether expensive networks may be used (`Bool`).
public let AVURLAssetAllowsExpensiveNetworkAccessKey = "AVURLAssetAllowsExpensiveNetworkAccessKey"
/// Whether constrained networks may be used (`Bool`).
public let AVURLAssetAllowsConstrainedNetworkAccessKey = "AVURLAssetAllowsConstrainedNetworkAccessKey"
/// The `User-Agent` for `http(s)` requests (`String`).
public let AVURLAssetHTTPUserAgentKey = "AVURLAssetHTTPUserAgentKey"
/// A media type that takes the place of what the server says (`String`).
public let AVURLAssetOverrideMIMETypeKey = "AVURLAssetOverrideMIMETypeKey"
/// Who makes the requests, for the system's privacy report (`Int`).
public let AVURLAssetURLRequestAttributionKey = "AVURLAssetURLRequestAttributionKey"
/// The identifier of the session that the asset belongs to (`UUID`).
public let AVURLAssetPrimarySessionIdentifierKey = "AVURLAssetPrimarySessionIdentifierKey"
