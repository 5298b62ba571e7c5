import AsyncHTTPClient
import Foundation
import NIOCore
import SpoolOrigin
import SpoolTesting

/// nginx, which serves a folder on this machine as it does by itself.
struct Nginx: Sendable {
    private let tool: Tool

    init?() {
        let file = URL(fileURLWithPath: "/usr/sbin/nginx")
        guard FileManager.default.isExecutableFile(atPath: file.path) else { return nil }
        tool = Tool(at: file)
    }

    /// Lends `body` a server of `folder`, and the URL of that.
    ///
    /// - Parameter lifetime: For how long what it serves may be used, as nginx writes it; nil: it says nothing.
    func run<R>(_ folder: URL, lifetime: String? = nil, _ body: (URL) async throws -> R) async throws -> R {
        let scratch = try ScratchDirectory()
        for _ in 0..<20 {
            // A port that was free a moment ago. If another takes it meanwhile, nginx ends, and the next one is tried.
            let finder = try await OriginServer.start([:])
            let port = finder.port
            await finder.stop()
            let file = scratch.file("nginx.conf")
            try Data(configuration(folder, port, scratch.path, lifetime).utf8).write(to: URL(fileURLWithPath: file))
            let run = try tool.start(["-c", file, "-e", scratch.file("error.log")])
            defer { run.end() }
            guard let url = URL(string: "http://127.0.0.1:\(port)/"), await listens(url, run) else { continue }
            return try await body(url)
        }
        throw Tool.Failed(description: "nginx did not start")
    }

    private func listens(_ url: URL, _ run: Tool.Run) async -> Bool {
        while run.isRunning, !Task.isCancelled {
            do {
                _ = try await HTTPClient.shared.execute(
                    HTTPClientRequest(url: url.absoluteString), timeout: .seconds(10))
                return true
            } catch {
                // It does not listen yet.
                await Task.yield()
            }
        }
        return false
    }

    private func configuration(_ folder: URL, _ port: Int, _ scratch: String, _ lifetime: String?) -> String {
        """
        daemon off; master_process off; pid \(scratch)/pid; error_log \(scratch)/error.log;
        events {}
        http {
            access_log off;
            client_body_temp_path \(scratch); proxy_temp_path \(scratch); fastcgi_temp_path \(scratch);
            uwsgi_temp_path \(scratch); scgi_temp_path \(scratch);
            types {
                application/vnd.apple.mpegurl m3u8; application/dash+xml mpd; video/mp2t ts; video/mp4 mp4 m4s;
                audio/mpeg mp3; video/webm webm;
            }
            server { listen 127.0.0.1:\(port); root \(folder.path); \(lifetime.map { "expires \($0);" } ?? "") }
        }
        """
    }
}
