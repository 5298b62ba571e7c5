import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct OriginBehaviorTests {
    let media = PatternBytes(length: 100_000)

    private func get(
        _ behaviors: OriginBehavior..., fields: [String: String] = ["Range": "bytes=1000-1999"]
    ) async throws -> (RawClient.Response, OriginExchange) {
        let resource = OriginResource(.pattern(media), rules: behaviors.map { .always($0) })
        return try await OriginServer.run(["/a": resource]) { origin in
            let response = try await RawClient.get(origin, "/a", fields)
            return (response, try await origin.log.first { $0.isOver })
        }
    }

    // MARK: Ranges

    @Test func noRanges() async throws {
        for (given, said) in [("none", "none"), (nil, nil)] as [(String?, String?)] {
            let (response, _) = try await get(.ignoresRanges(acceptRanges: given))
            #expect(response.status == 200)
            #expect(response.body.count == 100_000)
            #expect(response.field("Accept-Ranges") == said)
        }
    }

    @Test func alwaysPartialContent() async throws {
        let (response, _) = try await get(.alwaysPartialContent, fields: [:])
        #expect(response.status == 206)
        #expect(response.field("Content-Range") == "bytes 0-99999/100000")
    }

    @Test func ifRangeIgnored() async throws {
        let (response, _) = try await get(.ignoresIfRange, fields: ["Range": "bytes=0-9", "If-Range": "\"other\""])
        #expect(response.status == 206)
    }

    @Test func `A response can have a wrong Content-Range or a wrong body`() async throws {
        let (shifted, _) = try await get(.contentRangeShifted(by: 500))
        #expect(shifted.field("Content-Range") == "bytes 1500-2499/100000")
        #expect(shifted.body == media.bytes(1000..<2000))
        #expect(try await get(.contentRangeTotal(5)).0.field("Content-Range") == "bytes 1000-1999/5")
        #expect(try await get(.contentRangeTotal(nil)).0.field("Content-Range") == "bytes 1000-1999/*")
        #expect(try await get(.contentRange("bytes x")).0.field("Content-Range") == "bytes x")
        #expect(try await get(.contentRange(nil)).0.field("Content-Range") == nil)
        let (longer, exchange) = try await get(.extraBytes(24))
        #expect(longer.field("Content-Range") == "bytes 1000-1999/100000")
        #expect(longer.field("Content-Length") == "1024")
        #expect(longer.body == media.bytes(1000..<2024))
        #expect(exchange.rangeSent == 1000..<2024)
        let (shorter, _) = try await get(.extraBytes(-24))
        #expect(shorter.body == media.bytes(1000..<1976))
        let (limited, _) = try await get(.rangeLimit(10))
        #expect(limited.field("Content-Range") == "bytes 1000-1009/100000")
        #expect(limited.body == media.bytes(1000..<1010))
    }

    @Test func notSatisfiable() async throws {
        let (response, _) = try await get(.rangeNotSatisfiable)
        #expect(response.status == 416)
        #expect(response.field("Content-Range") == "bytes */100000")
        let (other, _) = try await get(.rangeNotSatisfiable, .contentRangeTotal(7))
        #expect(other.field("Content-Range") == "bytes */7")
    }

    // MARK: Length and framing

    @Test func `A chunked response has no length`() async throws {
        let (response, exchange) = try await get(.noLength(.chunked))
        #expect(response.field("Content-Length") == nil)
        #expect(response.field("Transfer-Encoding") == "chunked")
        #expect(response.dechunked.bytes == media.bytes(1000..<2000))
        #expect(response.dechunked.isComplete)
        #expect(exchange.bytesSent == 1000)
    }

    @Test func `A truncated chunked body has no last chunk`() async throws {
        let (response, exchange) = try await get(.noLength(.chunked), .truncate(after: 400))
        #expect(response.dechunked.bytes == media.bytes(1000..<1400))
        #expect(!response.dechunked.isComplete)
        #expect(exchange.ending == .interrupted)
    }

    @Test func `An HTTP/1.0 response ends when the connection closes`() async throws {
        let (response, _) = try await get(.noLength(.close), fields: [:])
        #expect(response.head.hasPrefix("HTTP/1.0 200"))
        #expect(response.field("Content-Length") == nil)
        #expect(response.body.elementsEqual(media.bytes(0..<100_000)))
    }

    @Test func `A Content-Length can exceed the body`() async throws {
        let (response, _) = try await get(.contentLength(5000))
        #expect(response.field("Content-Length") == "5000")
        #expect(response.body.count == 1000)
    }

    // MARK: Validators and content

    @Test func `A resource can have no validators, or validators that change`() async throws {
        #expect(try await get(.etag("W/\"x\"")).0.field("ETag") == "W/\"x\"")
        #expect(try await get(.noValidators).0.field("ETag") == nil)
        let other = PatternBytes(seed: 9, length: 100_000)
        let (response, _) = try await get(.version(.pattern(other), etag: "\"v9\""))
        #expect(response.field("ETag") == "\"v9\"")
        #expect(response.body == other.bytes(1000..<2000))
    }

    @Test func `A rule can apply to requests with given numbers`() async throws {
        var resource = OriginResource.pattern(10)
        resource.rules = [
            .first(2, .status(503, ["Retry-After": "1"])), .request(3, .status(500)), .from(5, .etag("\"n\"")),
        ]
        try await OriginServer.run(["/a": resource]) { origin in
            var seen: [String] = []
            for _ in 0..<7 {
                let response = try await RawClient.get(origin, "/a")
                seen.append("\(response.status)\(response.field("ETag") ?? "")\(response.field("Retry-After") ?? "")")
            }
            #expect(seen == ["5031", "5031", "200\"v1\"", "500", "200\"v1\"", "200\"n\"", "200\"n\""])
            #expect(origin.log.bytesSent() == 40, "the body of a rejection is not media")
        }
    }

    @Test func gzipIsGzip() async throws {
        let (response, _) = try await get(.gzip, fields: ["Accept-Encoding": "identity"])
        #expect(response.field("Content-Encoding") == "gzip")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gzip-\(UUID().uuidString).gz")
        try Data(response.body).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let gzip = Process()
        gzip.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        gzip.arguments = ["gzip", "-dc", file.path]
        let pipe = Pipe()
        gzip.standardOutput = pipe
        try gzip.run()
        let plain = try pipe.fileHandleForReading.readToEnd()
        gzip.waitUntilExit()
        #expect(plain == media.data)
    }

    // MARK: Refusals

    @Test func `Requests with an expired token or URL are rejected`() async throws {
        #expect(try await get(.requiresField("Authorization", "Bearer new", else: 401)).0.status == 401)
        let fields = ["Authorization": "Bearer new"]
        #expect(try await get(.requiresField("Authorization", "Bearer new", else: 401), fields: fields).0.status == 200)
        try await OriginServer.run(["/a": .pattern(10, .requiresQuery("sig=2", else: 410))]) { origin in
            let (old, new) = (try await RawClient.get(origin, "/a?sig=1"), try await RawClient.get(origin, "/a?sig=2"))
            #expect(old.status == 410)
            #expect(new.status == 200)
        }
    }

    @Test func redirects() async throws {
        try await OriginServer.run(["/a": .redirect(to: "/b", status: 307)]) { origin in
            let response = try await RawClient.get(origin, "/a")
            #expect(response.status == 307)
            #expect(response.field("Location") == "/b")
        }
    }

    // MARK: Endings

    @Test func `A response can be truncated in its body or before its headers`() async throws {
        let (response, exchange) = try await get(.truncate(after: 300))
        #expect(response.field("Content-Length") == "1000")
        #expect(response.body == media.bytes(1000..<1300))
        #expect(response.end == .closed)
        #expect(exchange.bytesSent == 300)
        let (nothing, _) = try await get(.truncate(after: nil))
        #expect(nothing.head.isEmpty)
    }

    @Test func `A reset connection is reported as reset`() async throws {
        let (response, exchange) = try await get(.reset(after: 0))
        #expect(response.end == .reset)
        #expect(exchange.ending == .interrupted)
        #expect(try await get(.reset(after: nil)).0.end == .reset)
    }

    @Test func `A stalled response waits until it is released`() async throws {
        try await OriginServer.run(["/a": .pattern(100_000, .stall(after: 70_000))]) { origin in
            async let response = RawClient.get(origin, "/a")
            let stalled = try await origin.log.first { $0.isStalled && $0.bytesSent == 70_000 }
            #expect(stalled.ending == .running)
            origin.release("/other")
            #expect(origin.log.exchanges[0].isStalled)
            origin.release("/a")
            let body = try await response.body
            #expect(body.elementsEqual(media.bytes(0..<100_000)))
        }
        try await OriginServer.run(["/a": .pattern(10, .stall(after: nil))]) { origin in
            async let response = RawClient.get(origin, "/a")
            #expect(try await origin.log.first { $0.isStalled }.status == nil)
            origin.release()
            let body = try await response.body
            #expect(body.count == 10)
        }
    }

    @Test("release() also applies to a response in progress that has not stalled yet")
    func earlyRelease() async throws {
        let clock = ManualClock()
        let behaviors: [OriginBehavior] = [.stall(after: 2000), .drip(1000, every: .seconds(1))]
        var resource = OriginResource.pattern(3000)
        resource.rules = behaviors.map { .always($0) }
        try await OriginServer.run(["/a": resource], clock: clock) { origin in
            let first = Task { try await RawClient.get(origin, "/a").body }
            try await clock.waitForSleepers(1)
            origin.release("/a")
            #expect(try await clock.flowing { try await first.value }.elementsEqual(media.bytes(0..<3000)))
            // The call to `release()` does not apply to the next request.
            let second = Task { try await RawClient.get(origin, "/a").body }
            try await clock.flowing { _ = try await origin.log.first { $0.index == 1 && $0.isStalled } }
            origin.release()
            #expect(try await clock.flowing { try await second.value }.count == 3000)
        }
    }

    @Test func `A client that disconnects during a stall is logged as abandoned`() async throws {
        try await OriginServer.run(["/a": .pattern(100_000, .stall(after: 100))]) { origin in
            let client = Task { try await RawClient.get(origin, "/a") }
            _ = try await origin.log.first { $0.isStalled && $0.bytesSent == 100 }
            client.cancel()
            let left = try await origin.log.first { $0.isOver }
            #expect(left.ending == .clientDisconnected)
            #expect(origin.log.bytesSent("/a") == 100)
            origin.release()
        }
    }

    @Test func aDripFollowsTheClock() async throws {
        let clock = ManualClock()
        try await OriginServer.run(["/a": .pattern(2500, .drip(1000, every: .seconds(1)))], clock: clock) { origin in
            async let response = RawClient.get(origin, "/a")
            try await clock.waitForSleepers(1)
            _ = try await origin.log.first { $0.bytesSent == 1000 }
            clock.advance(by: .seconds(1))
            try await clock.waitForSleepers(1)
            _ = try await origin.log.first { $0.bytesSent == 2000 }
            clock.advance(by: .seconds(1))
            let body = try await response.body
            #expect(body == media.bytes(0..<2500))
        }
    }

    @Test func `The log distinguishes distinct bytes from repeated bytes`() async throws {
        try await OriginServer.run(["/a": .pattern(1000)]) { origin in
            for range in ["bytes=0-99", "bytes=50-149", "bytes=300-399", "bytes=0-9"] {
                _ = try await RawClient.get(origin, "/a", ["Range": range])
            }
            #expect(origin.log.bytesSent("/a") == 310)
            #expect(origin.log.distinctBytesSent("/a") == 250)
            origin.log.clear()
            #expect(origin.log.exchanges.isEmpty)
            _ = try await RawClient.get(origin, "/a")
            #expect(origin.log.exchanges.map(\.index) == [4])
        }
    }
}
