import Foundation
import SpoolTesting

/// nginx as a server for the files in a folder, with its default behavior, or as a load balancer.
struct Nginx: Sendable {
    private static let path = "/usr/sbin/nginx"
    private let tool: Tool

    init?() {
        guard FileManager.default.isExecutableFile(atPath: Self.path) else { return nil }
        tool = Tool(at: URL(fileURLWithPath: Self.path))
    }

    /// Runs a server for the files in `folder`, and calls `body` with its URL.
    ///
    /// - Parameter lifetime: The freshness lifetime of its responses, in nginx's notation; `nil` for none.
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

    /// Runs a load balancer that distributes URLs over several servers by a consistent hash, and calls `body` with its
    /// URL.
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

    #if os(Linux)
    /// Runs a load balancer for the server at a port, and calls `body` with the balancer's port. The load balancer
    /// identifies its clients in header fields, and uses each connection to the server for several clients.
    func run<R>(naming port: Int, in network: BalancerNetwork, _ body: (Int) async throws -> R) async throws -> R {
        let scratch = try ScratchDirectory()
        let (tool, arguments) = try network.atBalancer(Self.path)
        let fields = """
            proxy_set_header Host $host; proxy_set_header Connection ""; proxy_set_header Forwarded "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            """
        return try await ServerProgram.run(
            tool, arguments: { arguments + ["-c", $0, "-e", scratch.file("error.log")] }, scratch, at: network.balancer,
            configuration: { listening in
                Self.configuration(
                    scratch,
                    """
                    upstream node { server \(network.server):\(port); keepalive 100; }
                    server {
                        listen \(listening) backlog=4096;
                        location / { proxy_pass http://node; proxy_http_version 1.1; proxy_read_timeout 120s; \(fields) }
                    }
                    """)
            }, { try await body($0.port ?? 80) })
    }
    #endif

    private static func configuration(_ scratch: ScratchDirectory, _ http: String) -> String {
        let path = scratch.path
        return """
            daemon off; master_process off; pid \(path)/pid; error_log \(path)/error.log;
            worker_rlimit_nofile 20000; events { worker_connections 18000; }
            http {
                access_log off;
                client_body_temp_path \(path); proxy_temp_path \(path); fastcgi_temp_path \(path);
                uwsgi_temp_path \(path); scgi_temp_path \(path);
                \(http)
            }
            """
    }
}
