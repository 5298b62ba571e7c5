import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct OriginServerTests {
    let media = PatternBytes(length: 100_000)

    // MARK: A static file

    @Test func `A whole file is served and logged`() async throws {
        try await OriginServer.run(["/a": .pattern(100_000)]) { origin in
            let response = try await RawClient.get(origin, "/a?token=1", ["X-Mark": "me"])
            #expect(response.status == 200)
            #expect(response.body.elementsEqual(media.bytes(0..<100_000)))
            #expect(response.field("Content-Length") == "100000")
            #expect(response.field("ETag") == "\"v1\"")
            #expect(response.field("Accept-Ranges") == "bytes")
            let logged = try await origin.log.first { $0.isOver }
            #expect(logged.ending == .finished)
            #expect(logged.path == "/a")
            #expect(logged.query == "token=1")
            #expect(logged.status == 200)
            #expect(logged.headerFields[HTTPField.Name("x-mark")!] == "me")  // The literal is a valid token.
            #expect(origin.log.bytesSent("/a") == 100_000)
            #expect(origin.log.rangesSent() == [0..<100_000])
        }
    }

    @Test(
        "Ranges are served as RFC 9110 §14 requires",
        arguments: [
            ("bytes=0-1", 206, 0..<2), ("bytes=99990-", 206, 99_990..<100_000), ("bytes=-10", 206, 99_990..<100_000),
            ("bytes=50-200000", 206, 50..<100_000), ("bytes=-200000", 206, 0..<100_000), ("bytes=100000-", 416, nil),
            ("bytes=-0", 416, nil), ("bytes=9223372036854775807-", 416, nil), ("bytes=99999999999999999999-", 416, nil),
            ("bytes=5-2", 200, 0..<100_000), ("bytes=a-b", 200, 0..<100_000), ("items=0-1", 200, 0..<100_000),
            ("bytes=0-1,3-4", 200, 0..<100_000),
        ] as [(String, Int, Range<Int64>?)])
    func ranges(_ asked: String, status: Int, body: Range<Int64>?) async throws {
        try await OriginServer.run(["/a": .pattern(100_000)]) { origin in
            let response = try await RawClient.get(origin, "/a", ["Range": asked])
            #expect(response.status == status)
            #expect(response.body == (body.map { media.bytes($0) } ?? []))
            switch status {
            case 206:
                #expect(response.field("Content-Range") == "bytes \(body!.lowerBound)-\(body!.upperBound - 1)/100000")
            case 416: #expect(response.field("Content-Range") == "bytes */100000")
            default: #expect(response.field("Content-Range") == nil)
            }
        }
    }

    @Test func `If-Range and If-None-Match are evaluated`() async throws {
        var resource = OriginResource.pattern(1000)
        resource.lastModified = Date(timeIntervalSince1970: 784_111_777)
        try await OriginServer.run(["/a": resource, "/weak": .pattern(1000, etag: "W/\"v1\"")]) { origin in
            let cases = [
                ("/a", "If-Range", "\"v1\"", 206), ("/a", "If-Range", "\"v2\"", 200),
                ("/a", "If-Range", "Sun, 06 Nov 1994 08:49:37 GMT", 206),
                ("/a", "If-Range", "Sun, 06 Nov 1994 08:49:38 GMT", 200),
                ("/weak", "If-Range", "W/\"v1\"", 200), ("/a", "If-None-Match", "\"v1\"", 304),
            ]
            for (path, name, value, status) in cases {
                let response = try await RawClient.get(origin, path, [name: value, "Range": "bytes=0-9"])
                #expect(response.status == status, "\(name): \(value) at \(path)")
            }
        }
    }

    @Test func `A response to HEAD has no body, and the status for unknown paths is 404`() async throws {
        try await OriginServer.run(["/a": .pattern(1000)]) { origin in
            let head = try await RawClient.get(origin, "/a", method: "HEAD")
            #expect(head.body.isEmpty)
            #expect(head.field("Content-Length") == "1000")
            #expect(try await RawClient.get(origin, "/b").status == 404)
            #expect(try await RawClient.get(origin, "/a", method: "DELETE").status == 405)
        }
    }

    @Test func `Pipelined requests receive their responses in order over one connection`() async throws {
        try await OriginServer.run(["/a": .pattern(50_000), "/b": .pattern(10, seed: 2)]) { origin in
            let text = "GET /a HTTP/1.1\r\nHost: o\r\n\r\nGET /b HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n"
            let response = try await RawClient.send(origin, text)
            #expect(Array(response.body.prefix(50_000)) == media.bytes(0..<50_000))
            #expect(Array(response.body.suffix(10)) == PatternBytes(seed: 2, length: 10).bytes(0..<10))
            #expect(origin.connectionCount == 1)
            #expect(origin.log.exchanges.map(\.connection) == [0, 0])
        }
    }

    @Test func `Data and files can be served`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("origin-\(UUID().uuidString)")
        try media.data.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let resources = ["/file": OriginResource(.file(file)), "/data": OriginResource(.data(media.data))]
        try await OriginServer.run(resources) { origin in
            for path in ["/file", "/data"] {
                let response = try await RawClient.get(origin, path, ["Range": "bytes=70000-79999"])
                #expect(response.body.elementsEqual(media.bytes(70_000..<80_000)), "\(path)")
            }
        }
    }

    @Test func `Resources can change while the origin runs`() async throws {
        try await OriginServer.run(["/a": .pattern(10)]) { origin in
            origin.update("/a") { $0.etag = "\"v2\"" }
            let changed = try await RawClient.get(origin, "/a")
            #expect(changed.field("ETag") == "\"v2\"")
            origin.set("/a", nil)
            let gone = try await RawClient.get(origin, "/a")
            #expect(gone.status == 404)
        }
    }

    @Test func `A stopped origin is unreachable and can restart on its port`() async throws {
        let first = try await OriginServer.start(["/a": .pattern(10)])
        await first.stop()
        await first.stop()
        await #expect(throws: (any Error).self) { try await RawClient.get(first, "/a") }
        let second = try await OriginServer.start(["/a": .pattern(10)], port: first.port)
        #expect(try await RawClient.get(second, "/a").status == 200)
        await second.stop()
    }
}
