import Foundation
import SpoolTesting
import Testing

/// A load balancer that sends all requests for a URL to the same server, or to another one if that server is down.
enum Balancer: Sendable, CustomTestStringConvertible {
    case nginx(Nginx)
    case haproxy(Tool)

    /// The balancers that are installed on this machine.
    static var installed: [Balancer] {
        let haproxy = Tool(at: URL(fileURLWithPath: "/usr/sbin/haproxy"))
        let hasHAProxy = FileManager.default.isExecutableFile(atPath: "/usr/sbin/haproxy")
        return [Nginx().map { .nginx($0) }, hasHAProxy ? .haproxy(haproxy) : nil].compactMap { $0 }
    }

    var testDescription: String {
        switch self {
        case .nginx: "nginx"
        case .haproxy: "HAProxy"
        }
    }

    /// Runs a balancer for the servers at these ports, and calls `body` with the balancer's URL.
    func run<R>(before ports: [Int], _ body: (URL) async throws -> R) async throws -> R {
        switch self {
        case .nginx(let nginx): return try await nginx.run(before: ports, body)
        case .haproxy(let tool):
            let scratch = try ScratchDirectory()
            return try await ServerProgram.run(
                tool, arguments: { ["-f", $0, "-db"] }, scratch,
                configuration: { Self.configuration(port: $0, before: ports) }, body)
        }
    }

    private static func configuration(port: Int, before ports: [Int]) -> String {
        let servers = ports.enumerated().map { "server s\($0) 127.0.0.1:\($1)" }.joined(separator: "\n  ")
        return """
            defaults
              mode http
              timeout connect 1s
              timeout client 30s
              timeout server 30s
            frontend front
              bind 127.0.0.1:\(port)
              default_backend nodes
            backend nodes
              balance uri
              hash-type consistent
              option httpchk GET /.spool/health
              option redispatch
              retries 2
              default-server check inter 100ms fall 2 rise 1
              \(servers)
            """
    }
}
