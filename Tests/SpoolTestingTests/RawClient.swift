import NIOCore
import NIOPosix
import SpoolTesting

/// An HTTP client that sends text, and returns the received bytes and the way in which the connection ended.
struct RawClient {
    enum End: Equatable { case closed, reset }

    struct Response {
        var head: String
        var body: [UInt8]
        var end: End

        var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }

        func field(_ name: String) -> String? {
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
                .map { String($0.dropFirst(name.count + 2)) }
        }

        /// The body with its chunks joined, and whether the last chunk was received.
        var dechunked: (bytes: [UInt8], isComplete: Bool) {
            var (rest, bytes) = (body[...], [UInt8]())
            while let lineEnd = rest.firstIndex(of: 13) {
                let size = Int(String(decoding: rest[rest.startIndex..<lineEnd], as: UTF8.self), radix: 16) ?? 0
                if size == 0 { return (bytes, true) }
                bytes += rest.dropFirst(lineEnd + 2 - rest.startIndex).prefix(size)
                rest = rest.dropFirst(lineEnd + 2 - rest.startIndex + size + 2)
            }
            return (bytes, false)
        }
    }

    /// Sends a `GET` over a new connection and reads until the connection ends.
    static func get(
        _ origin: OriginServer, _ path: String, _ fields: [String: String] = [:], method: String = "GET"
    ) async throws -> Response {
        let lines = fields.map { "\($0): \($1)\r\n" }.joined()
        return try await send(
            origin, "\(method) \(path) HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\(lines)\r\n")
    }

    /// Sends `text` and reads until the connection ends.
    static func send(_ origin: OriginServer, _ text: String) async throws -> Response {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: origin.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            var received: [UInt8] = []
            var end = End.closed
            do {
                for try await buffer in inbound { received += buffer.readableBytesView }
            } catch {
                end = .reset
            }
            let separator = Array("\r\n\r\n".utf8)
            let split = received.indices.first { received[$0...].starts(with: separator) } ?? received.count
            return Response(
                head: String(decoding: received[..<split], as: UTF8.self), body: Array(received[split...].dropFirst(4)),
                end: end)
        }
    }
}
