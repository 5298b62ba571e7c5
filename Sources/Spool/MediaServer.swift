public import Foundation

/// A server on this device that players use instead of origins, for media that a resource loader can't provide, such as
/// HLS.
///
/// `ProxyServer` in `SpoolProxy` conforms to this protocol. An app that needs a server links that target, and
/// `SpoolAVFoundation` passes the server's URLs to players. All members may be called from any thread.
public protocol MediaServer: AnyObject, Sendable {
    /// The current state of the server.
    var state: MediaServerState { get }

    /// Returns the URL to give to a player instead of a source's own URL.
    ///
    /// The player does not receive any credentials. The server sends the header fields of the source or its resolver
    /// only to the source's own origin. These fields are sent with requests for the source's URL, and for all URLs of
    /// the same origin that a playlist contains. The returned URL is a secret. It is valid until the server stops, or
    /// until hundreds of other URLs have been returned.
    ///
    /// The call checks whether the server is still reachable, and otherwise makes it listen again, on the same port if
    /// that port is free. The check is needed because the system may close the sockets of a suspended app. It usually
    /// takes less than a millisecond, but up to half a second if a socket no longer accepts connections.
    ///
    /// - Returns: The URL, or `nil` if the server is not running, or if the scheme of the source's URL is not `http` or
    ///   `https`.
    func url(for source: MediaSource) -> URL?

    /// Starts to close the server's sockets. The server listens again when the next URL is requested.
    ///
    /// `CachingPlayer` calls this method when the app is in the background and no `CachingPlayer` that uses this server
    /// is playing. Otherwise, the system may close the sockets of a suspended app without the server noticing. Other
    /// players that use the server, such as a plain `AVPlayer`, lose their connections.
    func suspend()

    /// Fetches the start of a stream, so that it plays immediately. The first variant that the server offers to players
    /// is fetched.
    ///
    /// Bytes that players wait for have priority. If the task is cancelled, received bytes stay in the cache. A server
    /// that can't preload may do nothing.
    ///
    /// - Parameters:
    ///   - source: The source of the playlist.
    ///   - seconds: The duration to preload, or `nil` for the whole stream. All segments that start before this time
    ///     are preloaded, but always at least one.
    /// - Throws: `CacheError` if the stream can't be fetched, or `CancellationError`.
    func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws
}

extension MediaServer {
    /// Does nothing.
    public func suspend() {}

    /// Does nothing.
    public func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws {}
}

/// The state of a ``MediaServer``.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum MediaServerState: Sendable, Hashable {
    /// The server has not been started, was stopped, or is suspended.
    case stopped
    /// The server listens on a port of this device.
    case running(port: Int)
}
