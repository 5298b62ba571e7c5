#if os(Linux)
import Foundation
import Synchronization

/// A small HTTP/1.1 server for one file, with support for ranges. All connections share one bandwidth limit, and each
/// response has a delay.
///
/// It counts the body bytes that its sockets accepted, including bytes that no client reads. It uses one thread for
/// each connection, and listens only on the loopback interface.
final class LimitedOrigin: Sendable {
    /// The URL of the file.
    let url: URL
    private let listener: Int32
    private let body: Data
    private let line: Line
    private let roundTrip: TimeInterval
    private let connections = Mutex<Set<Int32>>([])

    /// - Parameter roundTrip: The time from a request to the headers of its response, in seconds.
    /// - Throws: ``BenchmarkError`` if no port is available.
    init(_ body: Data, path: String, bytesPerSecond: Double, roundTrip: TimeInterval = 0) throws {
        self.body = body
        self.roundTrip = roundTrip
        line = Line(bytesPerSecond: bytesPerSecond)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { [listener] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard isListening, let url = URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))\(path)")
        else {
            throw BenchmarkError("no port to listen on: error \(errno)")
        }
        self.url = url
        Thread.detachNewThread { [weak self, listener] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0, let self else { return }
                self.begin(connection)
            }
        }
    }

    deinit { close(listener) }

    /// The number of body bytes that the sockets have accepted.
    var bytesSent: Int64 { line.sent }

    /// Stops listening and closes all connections.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        connections.withLock { for connection in $0 { shutdown(connection, Int32(SHUT_RDWR)) } }
    }

    private func begin(_ connection: Int32) {
        // These options limit the kernel's buffers, so that the origin stops soon after a client stops reading.
        for (level, option, value) in [
            (SOL_SOCKET, SO_SNDBUF, Int32(128 << 10)), (Int32(IPPROTO_TCP), TCP_NODELAY, 1),
        ] {
            var value = value
            setsockopt(connection, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
        connections.withLock { _ = $0.insert(connection) }
        Thread.detachNewThread {
            self.serve(connection)
            self.connections.withLock { _ = $0.remove(connection) }
            close(connection)
        }
    }

    private func serve(_ connection: Int32) {
        var received = Data()
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            if let end = received.range(of: Data("\r\n\r\n".utf8)) {
                let head = String(decoding: received[..<end.lowerBound], as: UTF8.self)
                received = Data(received[end.upperBound...])
                guard respond(to: head, connection) else { return }
            } else {
                let count = recv(connection, &buffer, buffer.count, 0)
                guard count > 0 else { return }
                received.append(contentsOf: buffer[..<count])
            }
        }
    }

    /// Sends the response to a request. Returns `false` if the connection is closed.
    private func respond(to request: String, _ connection: Int32) -> Bool {
        let range = request.split(separator: "\r\n").first { $0.lowercased().hasPrefix("range: bytes=") }
        let bounds = range.map { $0.dropFirst("range: bytes=".count).split(separator: "-").compactMap { Int($0) } }
        let start = min(bounds?.first ?? 0, body.count)
        let end = min((bounds?.dropFirst().first).map { $0 + 1 } ?? body.count, body.count)
        var head = "HTTP/1.1 \(range == nil ? "200 OK" : "206 Partial Content")\r\n"
        if range != nil { head += "Content-Range: bytes \(start)-\(end - 1)/\(body.count)\r\n" }
        head +=
            "Content-Length: \(end - start)\r\nContent-Type: video/mp4\r\nAccept-Ranges: bytes\r\nETag: \"1\"\r\n\r\n"
        if roundTrip > 0 { Thread.sleep(forTimeInterval: roundTrip) }
        guard send(Data(head.utf8), to: connection) else { return false }
        for position in stride(from: start, to: end, by: 8 << 10) {
            let piece = body[position..<min(position + (8 << 10), end)]
            line.wait(for: piece.count)
            guard send(piece, to: connection, counting: true) else { return false }
        }
        return true
    }

    /// Sends the data. Returns `false` if the connection is closed.
    private func send(_ data: Data, to connection: Int32, counting: Bool = false) -> Bool {
        data.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var rest = bytes
            while let base = rest.baseAddress, !rest.isEmpty {
                let count = Foundation.send(connection, base, rest.count, Int32(MSG_NOSIGNAL))
                guard count > 0 else { return false }
                if counting { line.count(count) }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return true
        }
    }
}

/// The bandwidth limit, which all connections share. Pieces are sent one after the other.
private final class Line: Sendable {
    private struct State {
        var free = ContinuousClock.now
        var sent: Int64 = 0
    }

    private let bytesPerSecond: Double
    private let state = Mutex(State())

    init(bytesPerSecond: Double) { self.bytesPerSecond = bytesPerSecond }

    var sent: Int64 { state.withLock { $0.sent } }

    func count(_ bytes: Int) { state.withLock { $0.sent += Int64(bytes) } }

    /// Blocks until the previous pieces are sent, and reserves the time for this number of bytes.
    func wait(for bytes: Int) {
        let start = state.withLock { state in
            let start = max(state.free, .now)
            state.free = start + .seconds(Double(bytes) / bytesPerSecond)
            return start
        }
        let delay = (start - .now) / .seconds(1)
        if delay > 0 { Thread.sleep(forTimeInterval: delay) }
    }
}
#endif
