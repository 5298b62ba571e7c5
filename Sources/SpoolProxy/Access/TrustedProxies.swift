#if Proxy
import HTTPRanges
import NIOCore
import SpoolHTTP

/// The load balancers and other proxies that identify the clients of their connections or requests.
///
/// Only these proxies are trusted to identify a client. From any other address, forwarding fields are ignored, and a
/// PROXY protocol header is rejected as an invalid request.
struct TrustedProxies: Sendable {
    private let blocks: [AddressBlock]
    /// Whether connections from trusted proxies start with a PROXY protocol header.
    let usesProxyProtocol: Bool

    /// - Parameter blocks: The addresses, as text. Invalid addresses are ignored, because the configuration has already
    ///   been validated.
    init(_ blocks: [String] = [], usesProxyProtocol: Bool = false) {
        self.blocks = blocks.compactMap { AddressBlock($0[...]) }
        self.usesProxyProtocol = usesProxyProtocol
    }

    /// Returns the client at the other end of a connection.
    func client(at address: SocketAddress?) -> ProxyClient {
        let client = ProxyClient(address)
        guard let known = client.address, contains(known) else { return client }
        return ProxyClient(address, isTrustedProxy: true)
    }

    /// Returns the client that a PROXY protocol header identifies.
    func client(named address: IPAddress) -> ProxyClient {
        ProxyClient(named: address, isTrustedProxy: contains(address))
    }

    /// Returns the client that the fields of a request identify.
    ///
    /// Each proxy appends the node from which it received the request. The client is therefore the last node that is
    /// not a trusted proxy. All entries before it were sent by that client and can't be trusted.
    ///
    /// - Parameter proxy: The trusted proxy that sent the request. It is returned if the fields do not identify a
    ///   client.
    /// - Throws: `RequestFailure` with status 400 if a field is malformed, or if `Forwarded` and `X-Forwarded-For`
    ///   identify different clients. A load balancer appends to one of these fields and forwards the other one
    ///   unchanged.
    func client(of fields: RequestFields, from proxy: ProxyClient) throws(RequestFailure) -> ProxyClient {
        let forwarded = try client(
            in: fields.values("forwarded"), ForwardedNodes.inForwarded, "Forwarded", from: proxy)
        let other = try client(
            in: fields.values("x-forwarded-for"), ForwardedNodes.inXForwardedFor, "X-Forwarded-For", from: proxy)
        if let forwarded, let other, forwarded != other {
            throw RequestFailure(
                400,
                "Forwarded and X-Forwarded-For identify different clients; the load balancer must remove one of them")
        }
        return forwarded ?? other ?? proxy
    }

    /// Returns the client that one field identifies, or `nil` if the field is missing or empty.
    private func client(
        in values: [String], _ parse: ([String]) -> [String]?, _ field: String, from proxy: ProxyClient
    ) throws(RequestFailure) -> ProxyClient? {
        if values.isEmpty { return nil }
        guard let nodes = parse(values) else { throw RequestFailure(400, "malformed \(field) field") }
        // Nodes before the client may be malformed, because the client sent them.
        for node in nodes.reversed() {
            if let address = IPAddress(host: node) {
                if contains(address) { continue }
                return ProxyClient(named: address)
            }
            guard node.hasPrefix("_") || node.lowercased() == "unknown" else {
                throw RequestFailure(400, "malformed \(field) field")
            }
            return ProxyClient(named: node)
        }
        return nodes.isEmpty ? nil : proxy
    }

    private func contains(_ address: IPAddress) -> Bool { blocks.contains { $0.contains(address) } }
}
#endif
