public import Foundation

/// A server on this machine that players ask in place of origins: for what a resource loader can't give them, such as
/// HLS.
///
/// Adopted by `ProxyServer` of `SpoolProxy`, which an app links that wants it; `SpoolAVFoundation` hands players its
/// URLs. All may be called from any thread.
public protocol MediaServer: AnyObject, Sendable {
    /// Whether it can be asked.
    var state: MediaServerState { get }

    /// The URL to hand to a player in place of a source's own.
    ///
    /// The player sees no credentials: the server sends the source's header fields, or its resolver's, to the source's
    /// own origin, for that URL and for all that a playlist there names. The URL is a secret, and good until the server
    /// stops or hundreds of others were handed out.
    ///
    /// Looks whether the server can still be reached, and has it listen anew if not, at the same port where that is
    /// free: a system may take a suspended app's sockets away without a word. Takes no longer than that.
    ///
    /// - Returns: Nil while the server is not running, and for a source that is not at `http` or `https`.
    func url(for source: MediaSource) -> URL?

    /// Brings the beginning of a stream, so that it starts at once: of its first variant that players are offered.
    ///
    /// Bytes that players wait for go first. Cancelled with its task, it keeps what has landed. A server that can't do
    /// this need not: then nothing is brought.
    ///
    /// - Parameters:
    ///   - source: The playlist.
    ///   - seconds: How much: the segments that begin before then, at least one. Nil: all of it.
    /// - Throws: Why it can't be had: `CacheError`, `CancellationError`.
    func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws
}

extension MediaServer {
    /// Brings nothing.
    public func preload(_ source: MediaSource, firstSeconds seconds: Double?) async throws {}
}

/// Whether a ``MediaServer`` can be asked.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum MediaServerState: Sendable, Hashable {
    /// It has not been started, or was stopped.
    case stopped
    /// It listens at a port of this machine.
    case running(port: Int)
}
