#if AsyncHTTPClient
import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP1
import NIOHTTP2
import Testing

@testable import SpoolHTTP

/// Unit tests of the gates, which stop invalid response headers before they reach the client.
@Suite struct ResponseGateTests {
    private static let good = ["100", "103", "200", "206", "304", "416", "599"]
    private static let bad = [
        "0", "99", "099", "101", "600", "1000", "-5", "+20", "", " 200", "2 0", "1e2", "\u{661}00", "20\u{0}",
    ]

    private func frame(_ statuses: [String], ends: Bool = false) -> HTTP2Frame.FramePayload {
        .headers(.init(headers: HPACKHeaders(statuses.map { (":status", $0) } + [("a", "b")]), endStream: ends))
    }

    /// Returns whether a stream forwards all of these frames.
    private func passes(_ frames: [HTTP2Frame.FramePayload]) throws -> Bool {
        let channel = EmbeddedChannel(handler: FrameGate())
        var hasFailed = false
        for frame in frames {
            do { _ = try channel.writeInbound(frame) } catch is ImpossibleStatus { hasFailed = true }
        }
        var count = 0
        while try channel.readInbound(as: HTTP2Frame.FramePayload.self) != nil { count += 1 }
        #expect(hasFailed == (count < frames.count))
        return count == frames.count
    }

    @Test(
        "E63: over HTTP/2, a response with an invalid status or with status 101 is not forwarded",
        arguments: good + bad)
    func frames(_ status: String) throws {
        #expect(try passes([frame([status])]) == Self.good.contains(status))
    }

    @Test(
        "E63: over HTTP/2, frames after a rejected frame are not forwarded, and an interim response can't end a stream"
    )
    func sequences() throws {
        #expect(try passes([frame(["103"]), frame(["200"]), frame([], ends: true)]))
        #expect(try !passes([frame(["103"], ends: true)]))
        #expect(try !passes([frame(["200", "99"])]))
        let channel = EmbeddedChannel(handler: FrameGate())
        #expect(throws: ImpossibleStatus.self) { try channel.writeInbound(frame(["-5"])) }
        try channel.writeInbound(frame(["200"]))
        #expect(try channel.readInbound(as: HTTP2Frame.FramePayload.self) == nil)
    }

    @Test(
        "E63: over HTTP/1, a response with an invalid status or with status 101 is not forwarded",
        arguments: [0, 99, 100, 101, 103, 199, 200, 599, 600, 999])
    func heads(_ status: Int) throws {
        let channel = EmbeddedChannel(handler: HeadGate(HeadCorrector()))
        let isGood = (100...599).contains(status) && status != 101
        let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: status))
        do {
            try channel.writeInbound(HTTPClientResponsePart.head(head))
            #expect(isGood)
        } catch is ImpossibleStatus {
            #expect(!isGood)
        }
        try channel.writeInbound(HTTPClientResponsePart.end(nil))
        #expect((try channel.readInbound(as: HTTPClientResponsePart.self) != nil) == isGood)
    }
}
#endif
