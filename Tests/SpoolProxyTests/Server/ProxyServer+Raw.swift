import Foundation
import NIOCore
import NIOPosix
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// A response as it was received over a socket.
struct RawResponse {
    var head: String
    var body: [UInt8]

    var status: Int { Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0 }

    func field(_ name: String) -> String? {
        head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    /// Removes one response from the front of the received bytes. The result is `nil` if the head is incomplete.
    ///
    /// The length of the body is the value of `Content-Length`.
    init?(_ bytes: inout ArraySlice<UInt8>, hasBody: Bool = true) {
        let separator = Array("\r\n\r\n".utf8)
        guard let end = bytes.firstRange(of: separator) else { return nil }
        head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
        body = []
        bytes = bytes[end.upperBound...]
        let length = hasBody ? field("content-length").flatMap { Int($0) } ?? 0 : 0
        body = Array(bytes.prefix(length))
        bytes = bytes.dropFirst(length)
    }
}

/// A connection that sends any text without checking it.
enum RawConnection {
    /// Sends text over a new connection, and returns all bytes that are received until it ends.
    static func exchange(_ text: String, port: Int) async throws -> [UInt8] {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            var received: [UInt8] = []
            for try await buffer in inbound { received += buffer.readableBytesView }
            return received
        }
    }

    /// Returns whether a new connection is accepted. It is closed immediately.
    static func isAccepted(port: Int) async -> Bool {
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        // This fails if no process is listening.
        guard let channel = try? await bootstrap.connect(host: "127.0.0.1", port: port).get() else { return false }
        try? await channel.close().get()  // This fails only if the channel is closed.
        return true
    }
}

extension ProxyServer {
    /// Sends text over a new connection, and returns all bytes that are received until it ends.
    func exchange(_ text: String) async throws -> [UInt8] {
        try await RawConnection.exchange(text, port: try #require(port))
    }

    /// Sends one request over a new connection, and returns the response.
    func get(_ target: String, _ fields: String = "", method: String = "GET") async throws -> RawResponse {
        let text = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(fields)\r\n"
        var bytes = try await exchange(text)[...]
        return try #require(RawResponse(&bytes, hasBody: method != "HEAD"))
    }

    /// Runs `body` with a server and its cache, which is in memory.
    static func run<R>(
        _ configuration: ProxyConfiguration = ProxyConfiguration(), freshness: FreshnessPolicy = .http,
        keys: CacheKeyPolicy = .url, clock: any Clock<Duration> = ContinuousClock(),
        dashboardClock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Date = { Date() }, upstream: (any Upstream)? = nil,
        _ body: (ProxyServer, MediaCache) async throws -> R
    ) async throws -> R {
        var (configuration, settings) = (configuration, MediaCache.Configuration())
        configuration.port = 0
        configuration.threadCount = 1
        settings.freshness = freshness
        settings.keyPolicy = keys
        configuration.configure(&settings)
        let cache = MediaCache.inMemory(
            upstream: upstream ?? HTTPUpstream.standard(configuration.restricting(.init())), configuration: settings,
            now: now)
        let server = try ProxyServer(
            cache: cache, configuration: configuration, clock: clock, dashboardClock: dashboardClock, now: now)
        try await server.start()
        return try await server.stopping(cache) { try await body(server, cache) }
    }

    /// Runs `body`, and then stops the server and closes its cache.
    func stopping<R>(_ cache: MediaCache, after body: () async throws -> R) async throws -> R {
        do {
            let result = try await body()
            await stop()
            await cache.close()
            return result
        } catch {
            await stop()
            await cache.close()
            throw error
        }
    }
}
