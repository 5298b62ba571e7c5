public import Foundation

/// A server on this device that players use instead of origins, for media that a resource loader can't provide, such as
/// HLS.
///
/// `ProxyServer` of `SpoolProxy` conforms to it. An app that needs it links that target, and `SpoolAVFoundation` gives
/// its URLs to players. All members may be called from any thread.
public protocol MediaServer: AnyObject, Sendable {
    /// The current state of the server.
    var state: MediaServerState { get }

    /// Returns the URL to give to a player instead of a source's own URL.
    ///
    /// The player does not receive any credentials. The server sends the source's header fields, or its resolver's,
    /// only to the source's own origin. They are sent for that URL, and for all URLs of that origin that a playlist
    /// names. The returned URL is a secret. It is valid until the server stops, or until hundreds of other URLs have
    /// been returned.
    ///
    /// The call checks whether the server is still reachable, and otherwise makes it listen again, on the same port if
    /// that is free. This is needed because the system may close the sockets of a suspended app.
    ///
    /// - Returns: `nil` if the server is not running, or if the URL of the source is not `http` or `https`.
    func url(for source: MediaSource) -> URL?

    /// Closes the server's sockets until the next URL is requested.
    ///
    /// A player calls it when the app is in the background and no player of this server is playing. Otherwise, the
    /// system may close the sockets of a suspended app without the server noticing. Other players of the server lose
    /// their connections.
    func suspend()

    /// Fetches the start of a stream, so that it plays immediately. It uses the first variant that players are offered.
    ///
    /// Bytes that players wait for have priority. If the task is cancelled, received bytes stay in the cache. A server
    /// that can't preload may do nothing.
    ///
    /// - Parameters:
    ///   - source: The playlist.
    ///   - seconds: The duration to preload: all segments that start before it, and at least one. `nil` for the whole
    ///     stream.
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
    /// The server has not been started, or was stopped.
    case stopped
    /// The server listens on a port of this device.
    case running(port: Int)
}
