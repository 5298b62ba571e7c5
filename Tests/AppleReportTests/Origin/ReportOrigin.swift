import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// An HTTP/1.1 origin in this process, on the same port of 127.0.0.1 and ::1.
///
/// It uses blocking sockets on threads, so that it does not need packages and can run in a simulator. Use it only for
/// this report.
final class ReportOrigin: Sendable {
    /// A request that was received.
    struct Received: Sendable {
        var path: String
        var range: String?
        var userAgent: String?
        var cookie: String?
        var isIPv6: Bool
    }

    struct State {
        var received: [Received] = []
        var sockets: Set<Int32> = []
        var isStopped = false
    }

    let files: [String: Fixtures.File]
    /// The port, which is the same on both addresses.
    let port: UInt16
    /// Whether the origin also listens on ::1.
    let hasIPv6: Bool
    let state = Mutex(State())
    /// The state that all bodies under `/held` share.
    let held = HeldBodies()

    /// Creates an origin that listens on a free port.
    init(files: [String: Fixtures.File]) throws {
        self.files = files
        guard let first = Self.listen(isIPv6: false, port: 0) else { throw POSIXError(.EADDRINUSE) }
        port = first.port
        let second = Self.listen(isIPv6: true, port: first.port)
        hasIPv6 = second != nil
        accept(on: first.socket, isIPv6: false)
        if let second { accept(on: second.socket, isIPv6: true) }
    }

    /// Shuts down all sockets, which ends requests in progress.
    func stop() {
        let sockets = state.withLock { state in
            state.isStopped = true
            defer { state.sockets = [] }
            return state.sockets
        }
        held.release(true)
        for socket in sockets { _ = shutdown(socket, Int32(SHUT_RDWR)) }
    }

    /// Returns the URL of a path, such as `/media/tone.wav`.
    func url(_ path: String, host: String = "127.0.0.1") -> URL {
        var parts = URLComponents()
        (parts.scheme, parts.host, parts.port, parts.path) = ("http", host, Int(port), path)
        guard let url = parts.url else { preconditionFailure("\(path) is not a path") }
        return url
    }

    /// Returns the requests whose paths end with a name, in order.
    func received(_ name: String) -> [Received] {
        state.withLock { $0.received.filter { $0.path.hasSuffix(name) } }
    }

    /// Releases the second halves of bodies under `/held`, or holds those of later bodies again.
    func release(_ isReleased: Bool) { held.release(isReleased) }

    // MARK: Sockets

    private static func listen(isIPv6: Bool, port: UInt16) -> (socket: Int32, port: UInt16)? {
        #if canImport(Darwin)
        let type = SOCK_STREAM
        #else
        let type = Int32(SOCK_STREAM.rawValue)
        #endif
        let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, type, 0)
        guard descriptor >= 0 else { return nil }
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        if isIPv6 {
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        let isBound =
            isIPv6
            ? withAddress(Self.address6(port)) { bind(descriptor, $0, $1) == 0 }
            : withAddress(Self.address4(port)) { bind(descriptor, $0, $1) == 0 }
        #if canImport(Darwin)
        let isListening = isBound && Darwin.listen(descriptor, 64) == 0
        #else
        let isListening = isBound && Glibc.listen(descriptor, 64) == 0
        #endif
        var actual = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let hasName = withUnsafeMutablePointer(to: &actual) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
        }
        // The port is at the same offset in both address structures.
        guard isListening, hasName else {
            close(descriptor)
            return nil
        }
        return (descriptor, UInt16(bigEndian: actual.sin6_port))
    }

    private static func address4(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func address6(_ port: UInt16) -> sockaddr_in6 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_addr = in6addr_loopback
        return address
    }

    private static func withAddress<Address>(
        _ address: Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) -> Bool {
        withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<Address>.size)) }
        }
    }

    private func accept(on listener: Int32, isIPv6: Bool) {
        state.withLock { _ = $0.sockets.insert(listener) }
        Thread.detachNewThread { [weak self] in
            while true {
                #if canImport(Darwin)
                let socket = Darwin.accept(listener, nil, nil)
                #else
                let socket = Glibc.accept(listener, nil, nil)
                #endif
                guard socket >= 0, let self, self.open(socket) else {
                    if socket >= 0 { close(socket) }
                    close(listener)
                    return
                }
                Thread.detachNewThread { [weak self] in
                    let connection = ReportConnection(socket)
                    while let self, self.serve(connection, isIPv6: isIPv6) {}
                    self?.closed(socket)
                    close(socket)
                }
            }
        }
    }

    private func open(_ socket: Int32) -> Bool {
        #if canImport(Darwin)
        var one: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &one, socklen_t(MemoryLayout<Int32>.size))
        #endif
        return state.withLock { state in
            if !state.isStopped { state.sockets.insert(socket) }
            return !state.isStopped
        }
    }

    private func closed(_ socket: Int32) { state.withLock { _ = $0.sockets.remove(socket) } }
}

/// One connection to the origin. Only the connection's own thread reads from it and writes to it.
final class ReportConnection {
    private let socket: Int32
    private var buffer: [UInt8] = []

    init(_ socket: Int32) { self.socket = socket }

    /// Reads and returns the header of the next request. Returns `nil` if the connection ends.
    func readHeader() -> String? {
        let end: [UInt8] = [13, 10, 13, 10]
        while true {
            if let found = buffer.firstRange(of: end) {
                defer { buffer.removeSubrange(..<found.upperBound) }
                return String(decoding: buffer[..<found.lowerBound], as: UTF8.self)
            }
            var piece = [UInt8](repeating: 0, count: 4096)
            let count = recv(socket, &piece, piece.count, 0)
            guard count > 0, buffer.count < 64 << 10 else { return nil }
            buffer += piece.prefix(count)
        }
    }

    /// Writes bytes. Returns `false` if the connection has ended.
    func write(_ data: Data) -> Bool {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        return data.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = send(socket, bytes.baseAddress?.advanced(by: sent), bytes.count - sent, flags)
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }
}

/// The hold on the second halves of bodies. The connections' threads wait until the hold ends.
final class HeldBodies: Sendable {
    private let condition = NSCondition()
    private let isReleased = Mutex(false)

    /// Ends the hold, or starts it again.
    func release(_ value: Bool) {
        condition.withLock {
            isReleased.withLock { $0 = value }
            condition.broadcast()
        }
    }

    /// Blocks until the hold ends.
    func wait() {
        condition.withLock {
            while !isReleased.withLock({ $0 }) { condition.wait() }
        }
    }
}
