import Foundation
import Spool
import SpoolOrigin

/// Where the demonstration's bytes come from: a server of its own that serves a file, or any other URL.
///
/// The own server sends 4 MB/s, or the whole file in fifteen seconds if that is faster, so that what the cache does can
/// be seen.
struct DemoOrigin: Sendable {
    /// The URL to play.
    let url: URL
    /// The file behind it, if it is our own server's.
    let file: URL?
    private let server: OriginServer?

    /// Serves a file from this machine.
    init(serving file: URL) async throws {
        guard FileManager.default.isReadableFile(atPath: file.path) else {
            throw CommandFailure(.unplayable, "“\(file.path)” can't be read: name a file that is there, or a URL")
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

    /// Uses any other URL.
    init(at url: URL) {
        self.url = url
        file = nil
        server = nil
    }

    /// Switches it off: requests from now on get no response.
    ///
    /// - Returns: The upstream of the second play; nil for the usual one, which finds our server gone.
    func switchOff() async -> (any Upstream)? {
        guard let server else { return Unreachable() }
        await server.stop()
        return nil
    }

    /// The bytes that the server's socket sent, and how many of them were sent again; nil where it is not our server.
    func sent() async throws -> (bytes: Int64, again: Int64, interrupted: Int)? {
        guard let server else { return nil }
        try await server.log.untilQuiet()
        let bytes = server.log.bytesSent(url.path)
        let interrupted = server.log.exchanges.count { $0.ending != .finished }
        return (bytes, bytes - server.log.distinctBytesSent(url.path), interrupted)
    }

    /// An upstream without a network.
    private struct Unreachable: Upstream {
        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            throw UpstreamError(.unreachable, "the network is switched off for the second play")
        }
    }
}
