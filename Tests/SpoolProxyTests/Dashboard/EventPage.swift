import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import Spool
@testable import SpoolProxy

/// A live page's stream of events, over a socket.
struct EventPage {
    /// A message, with its data as JSON.
    struct Message {
        /// The identifier, which also identifies the run of the server.
        var identifier: String?
        var name: String
        var data: [String: Any]

        /// The number of the last log entry.
        var id: Int? { identifier.flatMap { EventIdentifier($0)?.entry } }

        func list(_ name: String) -> [[String: Any]] { data[name] as? [[String: Any]] ?? [] }
    }

    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private var received: [UInt8] = []
    private var text = ""
    private(set) var head = ""
    /// Whether the stream has ended normally.
    private(set) var hasEnded = false
    /// The number of comments before the last message.
    private(set) var comments = 0

    /// Opens a stream and passes it to `body`.
    static func open<R>(
        _ server: ProxyServer, after lastID: String? = nil, _ body: (inout EventPage) async throws -> R
    ) async throws -> R {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: try #require(server.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let field = lastID.map { "Last-Event-ID: \($0)\r\n" } ?? ""
            try await outbound.write(
                ByteBuffer(string: "GET /.spool/api/events HTTP/1.1\r\nHost: localhost\r\n\(field)\r\n"))
            var page = EventPage(inbound: inbound.makeAsyncIterator())
            try await page.readHead()
            return try await body(&page)
        }
    }

    private init(inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator) { self.inbound = inbound }

    var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }

    private mutating func readHead() async throws {
        while true {
            if let end = received.firstRange(of: Array("\r\n\r\n".utf8)) {
                head = String(decoding: received[..<end.lowerBound], as: UTF8.self)
                received.removeFirst(end.upperBound)
                return
            }
            guard try await receive() else { return }
        }
    }

    private mutating func receive() async throws -> Bool {
        guard let bytes = try await inbound.next(isolation: #isolation) else { return false }
        received += bytes.readableBytesView
        return true
    }

    /// Removes the complete chunks from the received bytes. Returns `false` after the last chunk.
    private mutating func takeChunks() -> Bool {
        while let line = received.firstRange(of: [0x0D, 0x0A]) {
            guard let size = Int(String(decoding: received[..<line.lowerBound], as: UTF8.self), radix: 16) else {
                return false
            }
            if size == 0 {
                hasEnded = true
                return false
            }
            guard received.count >= line.upperBound + size + 2 else { return true }
            text += String(decoding: received[line.upperBound..<line.upperBound + size], as: UTF8.self)
            received.removeFirst(line.upperBound + size + 2)
        }
        return true
    }

    /// Returns the next message; `nil` at the end of the stream.
    mutating func next() async throws -> Message? {
        comments = 0
        while true {
            let isOpen = takeChunks()
            while let end = text.firstRange(of: "\n\n") {
                let lines = text[..<end.lowerBound].split(separator: "\n")
                text.removeSubrange(..<end.upperBound)
                if lines.allSatisfy({ $0.hasPrefix(":") }) {
                    comments += 1
                    continue
                }
                return try Self.message(lines.map(String.init))
            }
            guard isOpen, try await receive() else { return nil }
        }
    }

    private static func message(_ lines: [String]) throws -> Message {
        func value(_ name: String) -> String? {
            lines.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.count + 2)) }
        }
        let json = try JSONSerialization.jsonObject(with: Data(try #require(value("data")).utf8))
        return Message(
            identifier: value("id"), name: value("event") ?? "",
            data: try #require(json as? [String: Any]))
    }

    /// Returns the next message that satisfies a condition.
    mutating func first(where condition: (Message) -> Bool) async throws -> Message {
        while true {
            let message = try #require(try await next(), "the stream has ended")
            if condition(message) { return message }
        }
    }
}

extension ProxyServer {
    /// Returns the JSON from one of the API's paths.
    func json(_ path: String, _ fields: String = "") async throws -> [String: Any] {
        let response = try await get("/.spool/api/" + path, fields)
        #expect(response.status == 200, "\(path): \(response.status)")
        #expect(response.field("content-type") == "application/json")
        return try response.json
    }

    /// Sends a change to the API, with the operator's token unless it is `nil`.
    func post(
        _ json: String, _ token: OperatorToken?, path: String = "actions", _ fields: String = ""
    ) async throws -> RawResponse {
        let authorization = token.map { "Authorization: Bearer \($0.text)\r\n" } ?? ""
        let text =
            "POST /.spool/api/\(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(authorization)\(fields)"
            + "Content-Type: application/json\r\nContent-Length: \(json.utf8.count)\r\n\r\n\(json)"
        var bytes = try await exchange(text)[...]
        return try #require(RawResponse(&bytes))
    }
}

extension MediaCache {
    /// Waits until unused resources are closed and all received bytes are recorded.
    func waitUntilIdle() async {
        await resources.waitUntilClosed()
        await context.opening.openedStore?.waitUntilIdle()
    }
}

extension RawResponse {
    var json: [String: Any] {
        get throws { try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]) }
    }

    var text: String { String(decoding: body, as: UTF8.self) }
}
