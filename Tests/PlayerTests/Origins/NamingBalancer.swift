#if os(Linux)
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
        let hasHAProxy = FileManager.default.isExecutableFile(atPath: haproxyPath)
        return allCases.filter { $0 == .nginxWithFields ? Nginx() != nil : hasHAProxy }
    }

    private static let haproxyPath = "/usr/sbin/haproxy"

    var testDescription: String {
        switch self {
        case .haproxyWithProxyProtocol1: "HAProxy, PROXY protocol 1"
        case .haproxyWithProxyProtocol2: "HAProxy, PROXY protocol 2"
        case .haproxyWithFields: "HAProxy, X-Forwarded-For"
        case .nginxWithFields: "nginx, X-Forwarded-For"
        }
    }

    var usesProxyProtocol: Bool { self == .haproxyWithProxyProtocol1 || self == .haproxyWithProxyProtocol2 }

    /// Runs the load balancer for the server at a port, and calls `body` with the balancer's port.
    func run<R>(before port: Int, in network: BalancerNetwork, _ body: (Int) async throws -> R) async throws -> R {
        if self == .nginxWithFields, let nginx = Nginx() {
            return try await nginx.run(naming: port, in: network, body)
        }
        let scratch = try ScratchDirectory()
        let (haproxy, arguments) = try network.atBalancer(Self.haproxyPath)
        return try await ServerProgram.run(
            haproxy, arguments: { arguments + ["-f", $0, "-db"] }, scratch, at: network.balancer,
            configuration: { configuration(port: $0, before: "\(network.server):\(port)") },
            { try await body($0.port ?? 80) })
    }

    private func configuration(port: Int, before server: String) -> String {
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
              bind :\(port) backlog 4096
              default_backend node
            backend node
              option httpchk GET /.spool/health
              \(usesProxyProtocol ? "" : "option forwardfor")
              server node \(server) check inter 1s \(options)
            """
    }
}
#endif
