import Foundation
import SpoolTesting
import Testing

/// A load balancer for one server. It reports the client of each connection or request to the server.
enum NamingBalancer: Sendable, CaseIterable, CustomTestStringConvertible {
    case haproxyWithProxyProtocol1
    case haproxyWithProxyProtocol2
    case haproxyWithFields
    case nginxWithFields

    /// The load balancers that are installed on this machine.
    static var installed: [NamingBalancer] {
        allCases.filter { $0 == .nginxWithFields ? Nginx() != nil : haproxy != nil }
    }

    private static var haproxy: Tool? {
        let path = "/usr/sbin/haproxy"
        return FileManager.default.isExecutableFile(atPath: path) ? Tool(at: URL(fileURLWithPath: path)) : nil
    }

    var testDescription: String {
        switch self {
        case .haproxyWithProxyProtocol1: "HAProxy, PROXY protocol 1"
        case .haproxyWithProxyProtocol2: "HAProxy, PROXY protocol 2"
        case .haproxyWithFields: "HAProxy, X-Forwarded-For"
        case .nginxWithFields: "nginx, X-Forwarded-For"
        }
    }

    var usesProxyProtocol: Bool { self == .haproxyWithProxyProtocol1 || self == .haproxyWithProxyProtocol2 }

    /// Runs the load balancer for the server at a port, and calls `body` with the balancer's URL.
    func run<R>(before port: Int, _ body: (URL) async throws -> R) async throws -> R {
        if self == .nginxWithFields, let nginx = Nginx() { return try await nginx.run(naming: port, body) }
        guard let haproxy = Self.haproxy else { throw Tool.Failed(description: "HAProxy is not installed") }
        let scratch = try ScratchDirectory()
        return try await ServerProgram.run(
            haproxy, arguments: { ["-f", $0, "-db"] }, scratch,
            configuration: { configuration(port: $0, before: port) },
            body)
    }

    private func configuration(port: Int, before server: Int) -> String {
        let options =
            switch self {
            case .haproxyWithProxyProtocol1: "send-proxy"
            case .haproxyWithProxyProtocol2: "send-proxy-v2"
            case .haproxyWithFields, .nginxWithFields: ""
            }
        return """
            global
              maxconn 9000
            defaults
              mode \(usesProxyProtocol ? "tcp" : "http")
              timeout connect 30s
              timeout client 120s
              timeout server 120s
            frontend front
              bind 127.0.0.1:\(port) backlog 4096
              default_backend node
            backend node
              option httpchk GET /.spool/health
              \(usesProxyProtocol ? "" : "option forwardfor")
              server node 127.0.0.1:\(server) check inter 1s \(options)
            """
    }
}
