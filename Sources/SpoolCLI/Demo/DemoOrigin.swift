#if Tools
import Foundation
import Spool
import SpoolOrigin

/// The origin of the demonstration: a local server for one file, or any other URL.
///
/// The local server sends 4 MB/s, or the whole file in 15 seconds if that is faster. This makes the effect of the cache
/// visible.
struct DemoOrigin: Sendable {
    /// The URL to play.
    let url: URL
    /// The file that the local server serves, or `nil` for another URL.
    let file: URL?
    private let server: OriginServer?

    /// Creates an origin that serves a local file.
    init(serving file: URL) async throws {
        guard FileManager.default.isReadableFile(atPath: file.path) else {
            throw CommandFailure(.unplayable, "“\(file.path)” can't be read; give an existing file, or a URL")
        }
        let content = OriginContent.file(file)
        let bytesPerSecond = Int(max(4_000_000, content.length / 15))
        let ending = file.pathExtension.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        let path = ending.isEmpty ? "/media" : "/media.\(ending)"
        let server = try await OriginServer.start([
            path: OriginResource(
                content, contentType: DemoMedia.contentType(of: file),
                pace: OriginPace(bytes: bytesPerSecond / 100, every: .milliseconds(10)))
        ])
        self.server = server
        self.file = file
        url = server.url(path)
    }

    /// Creates an origin for another URL.
    init(at url: URL) {
        self.url = url
        file = nil
        server = nil
    }

    /// Switches the origin off. Later requests do not receive a response.
    ///
    /// - Returns: The transport for the second playback, or `nil` for the default one, which detects that the local
    ///   server has stopped.
    func switchOff() async -> (any Upstream)? {
        guard let server else { return UnreachableUpstream() }
        await server.stop()
        return nil
    }

    /// Returns the number of bytes that the server's socket sent, the number of bytes sent more than once, and the
    /// number of incomplete responses. Returns `nil` if the origin is not the local server.
    func sent() async throws -> (bytes: Int64, again: Int64, interrupted: Int)? {
        guard let server else { return nil }
        try await server.log.waitUntilIdle()
        let bytes = server.log.bytesSent(url.path)
        let interrupted = server.log.exchanges.count { $0.ending != .finished }
        return (bytes, bytes - server.log.distinctBytesSent(url.path), interrupted)
    }

    /// A transport that fails every request, as if there were no network.
    private struct UnreachableUpstream: Upstream {
        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            throw UpstreamError(.unreachable, "the network is switched off for the second playback")
        }
    }
}

/// The generated video of the demonstration: one minute with audio, encoded by ffmpeg.
///
/// Its index (the `moov` box) is at the end, as encoders write it, so a player must seek there before playback. Noise
/// makes the file as large as real media.
enum DemoMedia {
    static let name = "film.mp4"

    /// Returns the media type for a file extension, for the origin's responses.
    static func contentType(of file: URL) -> String {
        switch file.pathExtension.lowercased() {
        case "mp4", "m4v": "video/mp4"
        case "mov": "video/quicktime"
        case "m4a": "audio/mp4"
        case "mp3": "audio/mpeg"
        case "wav": "audio/wav"
        case "ogg", "oga", "opus": "audio/ogg"
        case "flac": "audio/flac"
        case "webm": "video/webm"
        case "mkv": "video/x-matroska"
        default: "application/octet-stream"
        }
    }
}
#endif
