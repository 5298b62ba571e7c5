#if os(Linux)
import Foundation
import Glibc
import SpoolTesting
import Synchronization

/// The addresses of clients, a load balancer and a server, which are in separate network namespaces if possible; see
/// network_namespaces(7).
///
/// The server is in the namespace of the test process. The clients can reach only the load balancer.
struct BalancerNetwork: Sendable {
    /// The address at which the server listens.
    private(set) var server = "127.0.0.1"
    /// The address from which the load balancer connects to the server.
    private(set) var balancer = "127.0.0.1"
    /// The address at which clients connect to the load balancer.
    private(set) var entrance = "127.0.0.1"
    /// The namespaces; `nil` if all addresses are on the loopback interface.
    private var namespaces: (clients: String, balancer: String)?

    /// Whether the network consists of namespaces.
    var isSeparate: Bool { namespaces != nil }

    private static let count = Mutex(0)

    /// Creates the namespaces, calls `body`, and removes them. If the namespaces can't be created, for example without
    /// the necessary privileges, the network is the loopback interface.
    static func run<R>(_ body: (BalancerNetwork) async throws -> R) async throws -> R {
        let process = Int(getpid())
        let number = count.withLock { count in
            count += 1
            return count
        }
        let (clients, balancer) = ("spool-\(process)-\(number)-clients", "spool-\(process)-\(number)-balancer")
        // The benchmarking addresses of RFC 2544 are not used by other networks.
        let prefix = "198.18.\((process * 8 + number) % 250)."
        let interface = "sp\(process)-\(number)"
        let commands = [
            "netns add \(clients)", "netns add \(balancer)", "-n \(clients) link set lo up",
            "-n \(balancer) link set lo up", "link add \(interface) type veth peer name server netns \(balancer)",
            "addr add \(prefix)1/30 dev \(interface)", "link set \(interface) up",
            "-n \(balancer) addr add \(prefix)2/30 dev server", "-n \(balancer) link set server up",
            "-n \(balancer) link add clients type veth peer name balancer netns \(clients)",
            "-n \(balancer) addr add \(prefix)5/30 dev clients", "-n \(balancer) link set clients up",
            "-n \(clients) addr add \(prefix)6/30 dev balancer", "-n \(clients) link set balancer up",
            "-n \(clients) route add local 198.19.0.0/16 dev lo",
            "-n \(balancer) route add 198.19.0.0/16 via \(prefix)6",
        ]
        var network = BalancerNetwork()
        var isReady = true
        for command in commands where isReady { isReady = await runs(command) }
        if isReady {
            network.namespaces = (clients, balancer)
            (network.server, network.balancer, network.entrance) = (prefix + "1", prefix + "2", prefix + "5")
        }
        func remove() async {
            // Deleting a namespace also deletes its interfaces and the other ends of their connections.
            for name in [clients, balancer] { _ = await runs("netns delete \(name)") }
        }
        do {
            let result = try await body(network)
            await remove()
            return result
        } catch {
            await remove()
            throw error
        }
    }

    /// Runs `ip` with arguments that are separated by spaces. Returns whether it succeeded.
    private static func runs(_ arguments: String) async -> Bool {
        guard let ip = Tool("ip") else { return false }
        return (try? await ip.run(arguments.split(separator: " ").map(String.init)))?.status == 0
    }

    /// Returns the program and the arguments that run a program at the load balancer.
    func atBalancer(_ path: String) throws -> (tool: Tool, arguments: [String]) {
        guard let namespaces else { return (Tool(at: URL(fileURLWithPath: path)), []) }
        guard let ip = Tool("ip") else { throw Tool.Failed(description: "ip is not installed") }
        return (ip, ["netns", "exec", namespaces.balancer, path])
    }

    /// Returns the address of a client. All addresses in 127.0.0.0/8 belong to the loopback interface.
    func address(_ client: Int) -> String {
        "\(isSeparate ? "198.19" : "127.1").\(client / 250).\(client % 250 + 1)"
    }

    /// Opens a connection from a client to the load balancer, sends a request, and returns the socket.
    ///
    /// - Parameters:
    ///   - request: The bytes of the request.
    ///   - client: The number of the client.
    ///   - port: The port of the load balancer.
    func send(_ request: String, from client: Int, to port: Int) async throws -> CInt {
        // A thread changes its own namespace only, so the connection is opened on a separate thread.
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try self.sendOnThread(request, from: client, to: port) })
            }
        }
    }

    private func sendOnThread(_ request: String, from client: Int, to port: Int) throws -> CInt {
        if let namespaces {
            let file = open("/run/netns/\(namespaces.clients)", O_RDONLY | O_CLOEXEC)
            defer { close(file) }
            guard Self.enter(file) == 0 else { throw Self.failure("setns") }
        }
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure("socket") }
        try Self.call("bind", bind, descriptor, address(client), port: 0)
        try Self.call("connect", Glibc.connect, descriptor, entrance, port: port)
        guard Glibc.send(descriptor, request, request.utf8.count, CInt(MSG_NOSIGNAL)) > 0 else {
            throw Self.failure("send")
        }
        return descriptor
    }

    /// Moves the current thread to the namespace of an open file, by setns(2). The C library's header does not declare
    /// this function for Swift.
    private static func enter(_ file: CInt) -> CInt {
        guard let symbol = dlsym(nil, "setns") else { return -1 }
        return unsafeBitCast(symbol, to: (@convention(c) (CInt, CInt) -> CInt).self)(file, 0)
    }

    private static func call(
        _ name: String, _ body: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt, _ descriptor: CInt,
        _ address: String, port: Int
    ) throws {
        var socketAddress = sockaddr_in()
        socketAddress.sin_family = sa_family_t(AF_INET)
        socketAddress.sin_port = in_port_t(port).bigEndian
        inet_pton(AF_INET, address, &socketAddress.sin_addr)
        let result = withUnsafePointer(to: &socketAddress) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw failure("\(name) \(address)") }
    }

    private static func failure(_ name: String) -> Tool.Failed {
        Tool.Failed(description: "\(name): \(String(cString: strerror(errno)))")
    }
}
#endif
