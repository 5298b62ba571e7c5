import Foundation
import HTTPRanges
import HTTPTypes
import NIOCore
import NIOEmbedded
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

@Suite(.timeLimit(.minutes(5))) struct ManifestMemoryTests {
    @Test("E467: a manifest that does not fit in the shared memory for manifests is rejected with status 503")
    func rejected() async throws {
        try await Self.run(limit: 600_000) { media, responder in
            let first = try await Self.manifest(of: media[0], responder)
            let failure = await #expect(throws: RequestFailure.self) {
                try await Self.manifest(of: media[1], responder)
            }
            #expect(failure?.status == 503)
            #expect(failure?.retryAfter == 5)
            #expect(responder.memory.usedBytes == first.bytes.readableBytes)
            // Small manifests are always sent.
            #expect(try await Self.manifest(of: media[2], responder).bytes.readableBytes < 100)
        }
        // After the first response, the second manifest fits.
        try await Self.run(limit: 600_000) { media, responder in
            for media in media[..<2] {
                let manifest = try await Self.manifest(of: media, responder)
                #expect(manifest.bytes.readableBytes > 300_000)
            }
            #expect(responder.memory.usedBytes == 0)
        }
    }

    @Test("E291, E467: a large playlist that does not change is rewritten once, and all clients share its bytes")
    func shared() async throws {
        try await Self.run(isLive: false) { media, responder in
            let first = try await Self.manifest(of: media[0], responder)
            let used = responder.memory.usedBytes
            #expect(used >= first.bytes.readableBytes)
            let others = try await withThrowingTaskGroup(of: ManifestResponder.Manifest.self) { group in
                for _ in 0..<5 { group.addTask { try await Self.manifest(of: media[0], responder) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(responder.memory.usedBytes == used)
            let start = first.bytes.withUnsafeReadableBytes { $0.baseAddress }
            #expect(others.allSatisfy { $0.bytes.withUnsafeReadableBytes { $0.baseAddress } == start })
        }
    }

    @Test("E467: the memory of a manifest is counted until the client has received the manifest")
    func sent() async throws {
        let memory = ManifestMemory(limit: 1000)
        let (written, wasWritten) = AsyncStream.makeStream(of: EventLoopPromise<Void>.self)
        let channel = await NIOAsyncTestingChannel(handler: DelayedWriteHandler { wasWritten.yield($0) })
        let task = Task {
            let head = ResponseHead(200, [:])
            var response = Response(head, .bytes(ByteBuffer(repeating: 1, count: 1000)))
            response.memory = ManifestMemory.Share(of: memory)
            try response.memory?.resize(to: 1000)
            return await ResponseSender(channel: channel, progress: SendProgress())
                .send(response, head, .length(1000))
        }
        var writes = written.makeAsyncIterator()
        let (head, body) = (await writes.next(), await writes.next())
        #expect(memory.usedBytes == 1000)
        for promise in [head, body] { promise?.succeed() }
        #expect(try await task.value == .complete)
        #expect(memory.usedBytes == 0)
    }

    /// A handler that passes each write to a closure instead of completing it.
    private final class DelayedWriteHandler: ChannelOutboundHandler, Sendable {
        typealias OutboundIn = IOData

        private let written: @Sendable (EventLoopPromise<Void>) -> Void

        init(_ written: @escaping @Sendable (EventLoopPromise<Void>) -> Void) { self.written = written }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if let promise { written(promise) }
        }
    }

    @Test(
        "E467: a request for several ranges of a manifest receives the whole manifest, without a copy for each client")
    func ranges() async throws {
        let upstream = ScriptedUpstream(["/0.m3u8": Self.playlist(0, isLive: false)])
        try await ProxyServer.run(upstream: upstream) { server, _ in
            let target = "/http/origin.example/0.m3u8"
            let whole = try await server.get(target)
            for range in ["0-0,2-", "0-9,20-29"] {
                let response = try await server.get(target, "Range: bytes=\(range)\r\n")
                #expect(response.status == 200)
                #expect(response.body == whole.body)
            }
            #expect(try await server.get(target, "Range: bytes=0-9\r\n").status == 206)
        }
    }

    /// Runs a body with two playlists of more than 300,000 bytes each and a short one, and a responder for them.
    private static func run(
        limit: Int = ManifestMemory.defaultLimit, isLive: Bool = true,
        _ body: ([MediaResource], ManifestResponder) async throws -> Void
    ) async throws {
        var playlists = (0..<2).map { ("/\($0).m3u8", playlist($0, isLive: isLive)) }
        playlists.append(("/2.m3u8", playlist(2, isLive: isLive, count: 1)))
        let upstream = ScriptedUpstream(Dictionary(uniqueKeysWithValues: playlists))
        try await ProxyServer.run(upstream: upstream) { _, cache in
            let media = try (0..<3).map { number in
                cache.media(for: MediaSource(url: try #require(URL(string: "http://origin.example/\(number).m3u8"))))
            }
            let clock = ContinuousClock()
            let responder = ManifestResponder(
                cache: cache, knowledge: StreamKnowledge(), offline: OfflineVariants(cache: cache, clock: clock),
                date: DateText(), clock: clock, maximumBitRate: nil, notesNeeds: false,
                memory: ManifestMemory(limit: limit))
            try await body(media, responder)
        }
    }

    private static func playlist(_ number: Int, isLive: Bool, count: Int = 12_000) -> OriginResource {
        let segments = (0..<count).map { "#EXTINF:4,\nsegments/\(number)/\($0).ts\n" }.joined()
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(segments)" + (isLive ? "" : "#EXT-X-ENDLIST\n")
        return OriginResource(
            .data(Data(text.utf8)), etag: "\"\(number)\"", contentType: "application/vnd.apple.mpegurl")
    }

    private static func manifest(
        of media: MediaResource, _ responder: ManifestResponder
    ) async throws -> ManifestResponder.Manifest {
        let head = RequestHead(
            method: .get, target: media.source.url.path, minorVersion: 1, fields: RequestFields(bytes: [], lines: []),
            body: .none, keepsAlive: true, host: "localhost")
        let call = try OutgoingRequest(
            OriginURL(media.source.url), head, AccessRules.Admitted(target: head.target, prefix: ""),
            ProxyClient(named: "client"), isReverse: true,
            origins: OriginRules(allowedHosts: [], mark: "test", serverPorts: ServerPorts()))
        let opened = try await media.reader(directives: RequestDirectives()).response()
        return try #require(try await responder.manifest(of: media, opened, for: head, call))
    }
}
