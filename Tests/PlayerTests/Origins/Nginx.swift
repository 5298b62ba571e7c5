import Foundation
import SpoolTesting

/// nginx, which serves a folder on this machine as it does by itself, or spreads requests over other servers.
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
        let types = """
            types {
                application/vnd.apple.mpegurl m3u8; application/dash+xml mpd; video/mp2t ts; video/mp4 mp4 m4s;
                audio/mpeg mp3; video/webm webm;
            }
            """
        let expires = lifetime.map { "expires \($0);" } ?? ""
        return try await ServerProgram.run(
            tool, arguments: { ["-c", $0, "-e", scratch.file("error.log")] }, scratch,
            configuration: { port in
                Self.configuration(
                    scratch, "\(types)\nserver { listen 127.0.0.1:\(port); root \(folder.path); \(expires) }")
            }, body)
    }

    /// Lends `body` a server that sends each URL's requests to the same one of several, by a consistent hash.
    func run<R>(before ports: [Int], _ body: (URL) async throws -> R) async throws -> R {
        let scratch = try ScratchDirectory()
        let servers = ports.map { "server 127.0.0.1:\($0) max_fails=1 fail_timeout=1h;" }.joined(separator: " ")
        return try await ServerProgram.run(
            tool, arguments: { ["-c", $0, "-e", scratch.file("error.log")] }, scratch,
            configuration: { port in
                Self.configuration(
                    scratch,
                    """
                    upstream nodes { hash $request_uri consistent; \(servers) }
                    server {
                        listen 127.0.0.1:\(port);
                        location / { proxy_pass http://nodes; proxy_http_version 1.1; proxy_set_header Host $host; }
                    }
                    """)
            }, body)
    }

    private static func configuration(_ scratch: ScratchDirectory, _ http: String) -> String {
        let path = scratch.path
        return """
            daemon off; master_process off; pid \(path)/pid; error_log \(path)/error.log;
            events {}
            http {
                access_log off;
                client_body_temp_path \(path); proxy_temp_path \(path); fastcgi_temp_path \(path);
                uwsgi_temp_path \(path); scgi_temp_path \(path);
                \(http)
            }
            """
    }
}
