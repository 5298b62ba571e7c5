import Foundation
import Spool
import SpoolOrigin

/// Where the demonstration's bytes come from: a server of its own that serves a file, or an address in the world.
///
/// The own server sends 4 MB/s, or the whole file in fifteen seconds if that is faster, so that what the cache does can
/// be seen.
struct DemoOrigin: Sendable {
    /// What to play.
    let url: URL
    /// The file behind it, if it is our own server's.
    let file: URL?
    private let server: OriginServer?

    /// Serves a file from this machine.
    init(serving file: URL) async throws {
        guard FileManager.default.isReadableFile(atPath: file.path) else {
            throw CommandFailure(message: "\(file.path) can't be read")
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

    /// Uses an address in the world.
    init(at url: URL) {
        self.url = url
        file = nil
        server = nil
    }

    /// Switches it off: whoever asks it from now on gets nothing.
    ///
    /// - Returns: Where the second play is to ask; an address in the world is not asked at all.
    func switchOff() async -> (any Upstream)? {
        guard let server else { return Unreachable() }
        await server.stop()
        return nil
    }

    /// What the server's socket sent, and how much of it was sent again; nil for an address in the world.
    func sent() async throws -> (bytes: Int64, again: Int64, interrupted: Int)? {
        guard let server else { return nil }
        try await server.log.untilQuiet()
        let bytes = server.log.bytesSent(url.path)
        let interrupted = server.log.exchanges.count { $0.ending != .finished }
        return (bytes, bytes - server.log.distinctBytesSent(url.path), interrupted)
    }

    /// An upstream with its line cut.
    private struct Unreachable: Upstream {
        func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
            throw UpstreamError(.unreachable, "the line is cut for the second play")
        }
    }
}
