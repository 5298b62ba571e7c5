import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

@Suite(.timeLimit(.minutes(5))) struct ResponseSenderTests {
    /// Sends a response with one part from each resource, and declares that both parts belong to the version of
    /// `first`.
    private func send(_ first: MediaResource, _ second: MediaResource) async throws -> SendOutcome {
        let version = try await first.response().version
        let parts = [first, second].map { media in
            Response.Part.media(media.reader(.bytes(0..<500)), count: 500, of: version)
        }
        let sender = ResponseSender(channel: NIOAsyncTestingChannel(), progress: SendProgress())
        let head = ResponseHead(206, [:])
        return await sender.send(Response(head, .parts(parts, count: 1000)), head, .length(1000))
    }

    @Test func `E82: parts of two versions without validators are not sent as one response`() async throws {
        let film = OriginResource.pattern(1000, .noValidators)
        try await OriginServer.run(["/a": film, "/b": film]) { origin in
            try await ProxyServer.run(freshness: .immutable) { _, cache in
                let (one, other) = (cache.media(for: origin.url("/a")), cache.media(for: origin.url("/b")))
                #expect(try await send(one, one) == .complete)
                guard case .cut(let reason) = try await send(one, other) else { throw SentAsOne() }
                #expect(reason.contains("version"))
            }
        }
    }

    @Test(arguments: [ChannelError.ioOnClosedChannel as any Error, IOError(errnoCode: EPIPE, reason: "write")])
    func `The access log states the reason if the client closes the connection`(_ error: any Error) {
        let reason = "the connection was closed before the client had received all bytes"
        #expect(SendOutcome.cut(by: error) == .cut(reason))
    }

    private struct SentAsOne: Error {}
}
