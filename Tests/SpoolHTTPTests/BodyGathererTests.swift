#if AsyncHTTPClient
import Foundation
import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import Spool
import SpoolTesting
import Testing

@testable import SpoolHTTP

/// Tests of the handler that joins the pieces of a body between the parser and the client.
@Suite(.timeLimit(.minutes(5))) struct BodyGathererTests {
    /// Sends the parts of one read through a gatherer. Returns the resulting body pieces, and whether the response has
    /// ended.
    private func read(
        _ channel: EmbeddedChannel, _ parts: [HTTPClientResponsePart]
    ) throws -> (bodies: [[UInt8]], hasEnded: Bool) {
        for part in parts { channel.pipeline.fireChannelRead(part) }
        channel.pipeline.fireChannelReadComplete()
        var (bodies, hasEnded): ([[UInt8]], Bool) = ([], false)
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            switch part {
            case .head: break
            case .body(let buffer): bodies.append(Array(buffer.readableBytesView))
            case .end: hasEnded = true
            }
        }
        return (bodies, hasEnded)
    }

    private func pieces(_ count: Int, of size: Int) -> [HTTPClientResponsePart] {
        (0..<count).map { number in
            .body(ByteBuffer(repeating: UInt8(truncatingIfNeeded: number), count: size))
        }
    }

    @Test("E117: the body pieces of one read are joined into pieces of at most 16 KiB, and passed on after the read")
    func joins() throws {
        let channel = EmbeddedChannel(handler: BodyGatherer())
        let head = HTTPClientResponsePart.head(.init(version: .http1_1, status: .ok))
        let first = try read(channel, [head] + pieces(20_000, of: 1))
        #expect(first.bodies.map(\.count) == [16384, 3616])
        #expect(Array(first.bodies.joined()) == (0..<20_000).map { UInt8(truncatingIfNeeded: $0) })
        // No bytes are retained for the next read.
        #expect(try read(channel, pieces(1, of: 1)).bodies == [[0]])
        let last = try read(channel, pieces(3, of: 10_000) + [.end(nil)])
        #expect(last.bodies.map(\.count) == [10_000, 10_000, 10_000])
        #expect(last.hasEnded)
    }

    @Test("E117: bytes that were read before an error or the end of the connection are passed on first")
    func passesOnFirst() throws {
        struct Failure: Error {}
        let channel = EmbeddedChannel(handler: BodyGatherer())
        channel.pipeline.fireChannelRead(HTTPClientResponsePart.body(ByteBuffer(string: "a")))
        channel.pipeline.fireErrorCaught(Failure())
        #expect(throws: Failure.self) { try channel.throwIfErrorCaught() }
        #expect(try channel.readInbound(as: HTTPClientResponsePart.self) == .body(ByteBuffer(string: "a")))
        channel.pipeline.fireChannelRead(HTTPClientResponsePart.body(ByteBuffer(string: "b")))
        channel.pipeline.fireChannelInactive()
        #expect(try channel.readInbound(as: HTTPClientResponsePart.self) == .body(ByteBuffer(string: "b")))
    }

    @Test("E117: a body in chunks of one byte is received completely, and the connection then serves the next response")
    func overASocket() async throws {
        let text = String((0..<100_000).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
        let chunks = text.map { "1\r\n\($0)\r\n" }.joined() + "0\r\n\r\n"
        let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
        var resource = OriginResource(.data(Data()))
        resource.rules = [.always(.raw(response, closes: false))]
        try await OriginServer.run(["/a": resource]) { origin in
            let upstream = AsyncHTTPClientUpstream()
            for _ in 0..<2 {
                let response = try await upstream.open(UpstreamRequest(url: origin.url("/a")))
                var (received, pieces): ([UInt8], Int) = ([], 0)
                for try await chunk in response.body {
                    chunk.withUnsafeBytes { received += $0 }
                    pieces += 1
                }
                #expect(received == Array(text.utf8))
                #expect(pieces < 10_000, "the pieces of a read are joined")
            }
            #expect(Set(origin.log.exchanges.map(\.connection)).count == 1)
        }
    }

    @Test("E479: one-byte frames of an HTTP/2 body are joined, and the connection is then used for the next response")
    func frames() async throws {
        let certificate = try TestCertificate.make()
        defer { certificate.remove() }
        let server = try await FrameServer(certificate.identity, byteCount: 20_000)
        let upstream = AsyncHTTPClientUpstream(additionalTrustRoots: [certificate.identity.certificate])
        let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/a"))
        for _ in 0..<2 {
            let response = try await upstream.open(UpstreamRequest(url: url))
            var (received, pieces): ([UInt8], Int) = ([], 0)
            for try await chunk in response.body {
                chunk.withUnsafeBytes { received += $0 }
                pieces += 1
            }
            #expect(received == (0..<20_000).map { UInt8(truncatingIfNeeded: $0) })
            #expect(pieces < 2000, "the frames of a read are joined")
        }
        try await server.stop()
    }
}

/// An HTTP/2 server whose responses consist of frames of one byte.
private struct FrameServer: Sendable {
    private let channel: any Channel
    let port: Int

    init(_ identity: OriginServer.Identity, byteCount: Int) async throws {
        let chain = try NIOSSLCertificate.fromPEMFile(identity.certificate.path)
        var settings = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: identity.key.path, format: .pem)))
        settings.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: settings)
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLServerHandler(context: context))
                    _ = try pipeline.configureHTTP2Pipeline(
                        mode: .server, connectionConfiguration: .init(), streamConfiguration: .init()
                    ) { stream in
                        stream.eventLoop.makeCompletedFuture {
                            try stream.pipeline.syncOperations.addHandler(Responder(byteCount: byteCount))
                        }
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func stop() async throws { try await channel.close() }

    /// A handler that sends the response when the request has ended.
    private final class Responder: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame.FramePayload
        typealias OutboundOut = HTTP2Frame.FramePayload
        private let byteCount: Int

        init(byteCount: Int) { self.byteCount = byteCount }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .headers(let request) = unwrapInboundIn(data), request.endStream else { return }
            context.write(wrapOutboundOut(.headers(.init(headers: [":status": "200"]))), promise: nil)
            for number in 0..<byteCount {
                let byte = ByteBuffer(bytes: [UInt8(truncatingIfNeeded: number)])
                let frame = HTTP2Frame.FramePayload.Data(data: .byteBuffer(byte), endStream: number == byteCount - 1)
                context.write(wrapOutboundOut(.data(frame)), promise: nil)
            }
            context.flush()
        }
    }
}
#endif
