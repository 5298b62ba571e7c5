import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct ScriptedUpstreamTests {
    let media = PatternBytes(length: 1_000_000)
    let request = UpstreamRequest(url: URL(string: "http://any.host/a?x=1")!)  // The literal is a valid URL.

    /// The capabilities in the contract, except those that need a network: redirects, timeouts and limits per host.
    static let abilities: Set<UpstreamContract.Capability> = [
        .backPressure, .encodedBodies, .cutsWithoutLength, .promptness,
    ]

    @Test("ScriptedUpstream:", arguments: UpstreamContract.cases(for: abilities))
    func contract(_ contractCase: UpstreamContract.Case) async throws {
        try await contractCase.run(
            over: .init { resources, settings in
                let upstream = ScriptedUpstream(resources)
                return .init(
                    upstream: upstream, log: upstream.log,
                    url: { URL(string: "http://\($1)\($0)")! },  // The contract passes a path and a host.
                    release: { upstream.release($0) }, connectionCount: { 1 },
                    stop: { upstream.setReachable(false) })
            })
    }

    @Test func `Bytes are delivered only up to the allowed number`() async throws {
        let upstream = ScriptedUpstream(["/a": .pattern(1_000_000)], delivery: .manual)
        var body = try await upstream.open(request).body.makeAsyncIterator()
        upstream.deliver(100, of: "/a")
        #expect(try await body.next()?.count == 100)
        #expect(upstream.log.bytesSent("/a") == 100)
        upstream.deliver(20_000, of: "/a")
        #expect(try await body.next()?.count == 16_384)
        #expect(try await body.next()?.count == 3616)
        upstream.deliverRest(of: "/a")
        var count = 20_100
        while let chunk = try await body.next() { count += chunk.count }
        #expect(count == 1_000_000)
        #expect(upstream.log.exchanges[0].ending == .finished)
    }

    @Test("release() also applies to a response in progress that has not stalled yet")
    func earlyRelease() async throws {
        let upstream = ScriptedUpstream(["/a": .pattern(3000, .stall(after: 2000))], delivery: .manual)
        let response = try await upstream.open(request)
        upstream.release()
        upstream.deliverRest(of: "/a")
        var count = 0
        for try await chunk in response.body { count += chunk.count }
        #expect(count == 3000)
    }

    @Test func `Bytes and failures wake a waiting consumer`() async throws {
        let upstream = ScriptedUpstream(["/a": .pattern(1000)], delivery: .manual)
        let response = try await upstream.open(request)
        let reader = Task {
            var count = 0
            do {
                for try await chunk in response.body { count += chunk.count }
                return (count, nil as UpstreamError?)
            } catch {
                return (count, error as? UpstreamError)
            }
        }
        upstream.deliver(10, of: "/a")
        try await upstream.log.wait { $0[0].bytesSent == 10 }
        upstream.fail("/a", UpstreamError(.connectionLost, "the connection was lost"))
        let (count, error) = await reader.value
        #expect(count == 10)
        #expect(error?.code == .connectionLost)
        #expect(upstream.log.exchanges[0].ending == .interrupted)
    }

    @Test func `A script determines the response to each request`() async throws {
        let upstream = ScriptedUpstream(["/a": .pattern(1000)])
        upstream.script("/a") { [media] request, index in
            switch index {
            case 0: throw UpstreamError(.unreachable, "no route")
            case 1:
                let head = HTTPResponse(status: .partialContent, headerFields: [.contentRange: "bytes 5-6/1000"])
                return .init(head, .pattern(media), body: 5..<7, failure: UpstreamError(.connectionLost, "gone"))
            default: return nil
            }
        }
        await #expect(throws: UpstreamError.self) { try await upstream.open(request) }
        let second = try await upstream.open(request)
        var body = second.body.makeAsyncIterator()
        #expect(try await body.next()?.withUnsafeBytes { Array($0) } == media.bytes(5..<7))
        await #expect(throws: UpstreamError.self) { try await body.next() }
        #expect(try await upstream.open(request).head.status == .ok)
        #expect(upstream.log.rangesSent("/a") == [5..<7])
        #expect(upstream.log.exchanges.map(\.query) == ["x=1", "x=1", "x=1"])
    }

    @Test func aDripFollowsTheClock() async throws {
        let clock = ManualClock()
        let upstream = ScriptedUpstream(["/a": .pattern(250, .drip(100, every: .seconds(1)))], clock: clock)
        let response = try await upstream.open(request)
        let reader = Task {
            var counts: [Int] = []
            for try await chunk in response.body { counts.append(chunk.count) }
            return counts
        }
        for _ in 0..<2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
        #expect(try await reader.value == [100, 100, 50])
    }
}
