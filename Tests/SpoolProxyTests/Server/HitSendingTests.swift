#if Proxy
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolStorage
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Responses that the event loop sends from stored bytes: from a buffer, or from the file.
@Suite(.timeLimit(.minutes(5))) struct HitSendingTests {
    private static let length = 4 * RecentMedia.readLimit
    private static let pattern = PatternBytes(length: Int64(length))

    private static func bytes(_ range: Range<Int>) -> [UInt8] {
        OriginContent.pattern(pattern).bytes(Int64(range.lowerBound)..<Int64(range.upperBound))
    }

    /// A cache on disk with one stored resource, and the faults of the cache's files.
    private struct Stage {
        let cache: MediaCache
        let files: FaultyFileSystem
        let url: URL
        let scratch: ScratchDirectory

        /// Returns the state of a connection that has just sent the resource.
        func recentMedia() async throws -> RecentMedia {
            let media = cache.media(for: url)
            let response = try await media.response().response
            var head = ResponseHead(200)
            head.fields[.contentType] = "video/mp4"
            let request = try HitSendingTests.request("")
            let hot = RecentMedia(
                request, media, response, head: head, freshness: .immutable, readsOrigin: false, node: nil)
            return try #require(hot)
        }
    }

    private static func request(_ range: String) throws -> RequestHead {
        let field = range.isEmpty ? "" : "Range: bytes=\(range)\r\n"
        var bytes = ByteBuffer(string: "GET /media HTTP/1.1\r\nHost: localhost\r\n\(field)\r\n")
        var parser = RequestParser(limit: 4096)
        return try #require(try parser.next(in: &bytes))
    }

    private static func run(
        inMemory count: Int = .max, _ configuration: ProxyConfiguration = ProxyConfiguration(),
        _ body: (Stage, ProxyServer, _ target: String) async throws -> Void
    ) async throws {
        try await OriginServer.run(["/media": OriginResource(.pattern(pattern))]) { origin in
            var (configuration, settings) = (configuration, MediaCache.Configuration())
            configuration.port = 0
            configuration.threadCount = 1
            settings.freshness = .immutable
            configuration.configure(&settings)
            let (scratch, files) = (try ScratchDirectory(), FaultyFileSystem())
            files.limitReadsWithoutBlocking(to: count)
            let cache = MediaCache(
                directory: URL(fileURLWithPath: scratch.file("cache")),
                upstream: HTTPUpstream.standard(configuration.restricting(.init())), configuration: settings,
                fileSystem: files, clock: CacheClock(clock: ContinuousClock()))
            let server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
            do {
                let stage = Stage(cache: cache, files: files, url: origin.url("/media"), scratch: scratch)
                let target = "/http/127.0.0.1:\(origin.port)/media"
                // This request stores the resource.
                #expect(try await server.get(target).body.count == length)
                try await body(stage, server, target)
            } catch {
                await server.stop()
                await cache.close()
                throw error
            }
            await server.stop()
            await cache.close()
        }
    }

    // MARK: - The choice of the method

    @Test(
        "E183: a hit up to the size limit is read into the buffer with its headers; a larger hit is sent from its file")
    func limit() async throws {
        try await Self.run { stage, _, _ in
            let hot = try await stage.recentMedia()
            let buffers = HitBuffers()
            for count in [1, 2, RecentMedia.readLimit - 1, RecentMedia.readLimit] {
                var hit = try #require(
                    hot.hit(try Self.request("7-\(6 + count)"), date: DateText(), buffers: buffers))
                #expect(hit.slice == nil && hit.count == count)
                let response = try #require(RawResponse(&hit.buffer))
                #expect(response.status == 206)
                #expect(response.field("content-length") == "\(count)")
                #expect(response.body.elementsEqual(Self.bytes(7..<7 + count)))
            }
            let large = try #require(
                hot.hit(try Self.request("7-\(7 + RecentMedia.readLimit)"), date: DateText(), buffers: buffers))
            #expect(large.count == RecentMedia.readLimit + 1)
            try #require(large.slice).release()
        }
    }

    @Test(
        "E184: a hit that is partly in memory is sent from its file; a hit that is not in memory is sent by a reader")
    func fallback() async throws {
        try await Self.run { stage, _, _ in
            let hot = try await stage.recentMedia()
            let (request, buffers) = (try Self.request("0-4095"), HitBuffers())
            #expect(try #require(hot.hit(request, date: DateText(), buffers: buffers)).slice == nil)
            stage.files.limitReadsWithoutBlocking(to: 4095)
            var hit = try #require(hot.hit(request, date: DateText(), buffers: buffers))
            try #require(hit.slice).release()
            // The buffer contains only the response head.
            #expect(try #require(RawResponse(&hit.buffer)).body.isEmpty)
            #expect(hit.count == 4096 && hit.buffer.readableBytes == 0)
            stage.files.limitReadsWithoutBlocking(to: 0)
            #expect(hot.hit(request, date: DateText(), buffers: buffers) == nil)
        }
    }

    @Test("E185: bodies are sent from their files while unsent responses use up the memory limit")
    func memory() async throws {
        try await Self.run { stage, _, _ in
            let hot = try await stage.recentMedia()
            let (request, buffers) = (try Self.request("0-4095"), HitBuffers())
            func hit() throws -> RecentMedia.Hit { try #require(hot.hit(request, date: DateText(), buffers: buffers)) }
            var unsent: [ByteBuffer] = []
            while true {
                let hit = try hit()
                if let slice = hit.slice {
                    slice.release()
                    break
                }
                buffers.willSend(hit.buffer)
                unsent.append(hit.buffer)
            }
            let memory = unsent.reduce(0) { $0 + $1.storageCapacity }
            #expect(memory >= HitBuffers.unsentLimit && memory < HitBuffers.unsentLimit + 64 << 10)
            for buffer in unsent { buffers.didSend(buffer) }
            #expect(try hit().slice == nil)
        }
    }

    @Test func `The next response reuses the buffer of a response that was sent, but not of an unsent one`() {
        let buffers = HitBuffers()
        func address(_ buffer: ByteBuffer?) -> UnsafeRawPointer? { buffer?.withUnsafeReadableBytes { $0.baseAddress } }
        func taken() -> ByteBuffer? {
            var buffer = buffers.take(capacity: 1000)
            #expect(buffer?.readableBytes == 0)
            buffer?.writeString("a response")
            return buffer
        }
        var first = taken()
        let place = address(first)
        if let first { buffers.putBack(first) }
        first = nil
        let second = taken()
        #expect(address(second) == place)
        // The second buffer is still in use.
        if let second { buffers.putBack(second) }
        #expect(address(taken()) != place)
        #expect(second.map { String(buffer: $0) } == "a response")
    }

    // MARK: - Over a connection

    private struct Sent {
        var fields: String
        var method = "GET"
        var status = 206
        var body: Range<Int>
        var isBodiless = false
    }

    @Test(
        "E183: responses to pipelined requests contain the exact bytes, whether or not the bytes are in memory",
        arguments: [Int.max, 1000, 0])
    func pipelined(inMemory count: Int) async throws {
        let limit = RecentMedia.readLimit
        func range(_ range: Range<Int>) -> Sent {
            Sent(fields: "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)\r\n", body: range)
        }
        var all: [Sent] = []
        for size in [1, 4096, limit - 1, limit, limit + 1, 2 * limit] {
            all += [range(0..<size), range(limit - 1..<limit - 1 + size), range(Self.length - size..<Self.length)]
            all.append(Sent(fields: "Range: bytes=-\(size)\r\n", body: Self.length - size..<Self.length))
            all.append(Sent(fields: "", method: "HEAD", status: 200, body: 0..<Self.length, isBodiless: true))
        }
        all.append(Sent(fields: "", status: 200, body: 0..<Self.length))
        all.append(Sent(fields: "Range: bytes=\(Self.length)-\r\n", status: 416, body: 0..<0))
        all.append(range(5..<10))
        let log = try ScratchDirectory()
        var configuration = ProxyConfiguration()
        configuration.accessLog = URL(fileURLWithPath: log.file("log"))
        try await Self.run(inMemory: count, configuration) { _, server, target in
            let requests = all.enumerated().map { index, sent in
                "\(sent.method) \(target) HTTP/1.1\r\nHost: localhost\r\n" + sent.fields
                    + (index == all.count - 1 ? "Connection: close\r\n" : "") + "\r\n"
            }
            var bytes = try await server.exchange(requests.joined())[...]
            for sent in all {
                let response = try #require(RawResponse(&bytes, hasBody: !sent.isBodiless), "\(sent)")
                #expect(response.status == sent.status, "\(sent)")
                guard sent.status < 400 else { continue }
                #expect(response.field("content-length") == "\(sent.body.count)", "\(sent)")
                let isExact = response.body.elementsEqual(Self.bytes(sent.body))
                #expect(sent.isBodiless ? response.body.isEmpty : isExact, "\(sent)")
            }
            #expect(bytes.isEmpty)
        }
        struct Line: Decodable {
            var status: Int
            var bytes: Int
            var offset: Int?
        }
        // The first line of the log belongs to the request that stored the resource.
        let text = try String(contentsOf: URL(fileURLWithPath: log.file("log")), encoding: .utf8)
        let lines = try text.split(separator: "\n").dropFirst().map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        #expect(lines.count == all.count)
        for (line, sent) in zip(lines, all) where sent.status < 400 {
            #expect(line.bytes == (sent.isBodiless ? 0 : sent.body.count), "\(sent)")
            #expect(line.offset == sent.body.lowerBound, "\(sent)")
        }
    }

    /// Runs `body` over a connection with a small send buffer at the server and a small receive buffer at the client.
    private static func slowly(
        _ server: ProxyServer, _ table: NIOLoopBoundBox<ConnectionTable>,
        _ body: (NIOAsyncChannelInboundStream<ByteBuffer>, NIOAsyncChannelOutboundWriter<ByteBuffer>) async throws ->
            Void
    ) async throws {
        let listener = try await ServerBootstrap(group: table.eventLoop)
            .childChannelOption(.socketOption(.so_sndbuf), value: 4096)
            .childChannelInitializer { [service = server.service] channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = ProxyConnection(
                        service: service, client: ProxyClient(channel.remoteAddress), table: table.value)
                    try channel.pipeline.syncOperations.addHandler(connection)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.socketOption(.so_rcvbuf), value: 4096)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
            .channelOption(.maxMessagesPerRead, value: 1)
            .connect(host: "127.0.0.1", port: try #require(listener.localAddress?.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel,
                        configuration: .init(backPressureStrategy: .init(lowWatermark: 1, highWatermark: 2)))
                }
            }
        try await client.executeThenClose { try await body($0, $1) }
        try await listener.close()
    }

    @Test("E185: a slow client receives the exact bytes, and the memory for a client is released after it disconnects")
    func slowClient() async throws {
        try await Self.run { _, server, target in
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let table = NIOLoopBoundBox.makeBoxSendingValue(ConnectionTable(), eventLoop: loop)
            let start = "GET \(target) HTTP/1.1\r\nHost: localhost\r\n"
            let size = RecentMedia.readLimit
            let requests = (0..<20).map { start + "Range: bytes=\($0)-\($0 + size - 1)\r\n\r\n" }.joined()
            try await Self.slowly(server, table) { inbound, outbound in
                try await outbound.write(ByteBuffer(string: requests))
                var received: [UInt8] = []
                var count = 0
                for try await piece in inbound {
                    received += piece.readableBytesView
                    var bytes = received[...]
                    while let response = RawResponse(&bytes), response.body.count == size {
                        #expect(response.body.elementsEqual(Self.bytes(count..<count + size)))
                        count += 1
                        received = Array(bytes)
                    }
                    if count == 20 { break }
                }
                #expect(count == 20)
            }
            try await Self.slowly(server, table) { inbound, outbound in
                try await outbound.write(ByteBuffer(string: requests))
                var count = 0
                for try await piece in inbound {
                    count += piece.readableBytes
                    if count > 2 * size { break }
                }
                #expect(try await loop.submit { table.value.buffers.unsent }.get() > 0)
            }
            // The connection ends when the server detects that the client has disconnected.
            while try await loop.submit({ table.value.buffers.unsent }).get() > 0 { await Task.yield() }
            #expect(try await server.get(target).body.elementsEqual(Self.bytes(0..<Self.length)))
        }
    }
}

extension RawResponse {
    /// Reads a response from a buffer, with the part of its body that the buffer contains.
    fileprivate init?(_ buffer: inout ByteBuffer) {
        var bytes = Array(buffer.readableBytesView)[...]
        self.init(&bytes)
        buffer.moveReaderIndex(forwardBy: buffer.readableBytes - bytes.count)
    }
}
#endif
