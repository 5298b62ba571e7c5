import Foundation
import HTTPTypes
import Spool
import SpoolOrigin

extension UpstreamContract {
    static let media = PatternBytes(length: 1_000_000)

    /// The cases for complete responses.
    static let responseCases: [Case] = [
        Case("a whole body is received in order, with its headers and URL", ["/a": .pattern(1_000_000)]) { it, _ in
            let response = try await it.open("/a?q=%20x")
            try checkEqual(response.head.status.code, 200, "status")
            try checkEqual(response.head.headerFields[.eTag], "\"v1\"", "ETag")
            try checkEqual(response.head.headerFields[.contentLength], "1000000", "Content-Length")
            try checkEqual(response.url.absoluteString, it.url("/a?q=%20x").absoluteString, "URL")
            try media.verify(try await response.body.collect(), at: 0)
            try await it.log.waitUntilIdle()
            try checkEqual(it.log.bytesSent("/a"), 1_000_000, "bytes sent")
            try checkEqual(it.log.exchanges.first?.query, "q=%20x", "query")
        },
        Case("a range is requested unchanged, and only its bytes are sent", ["/a": .pattern(1_000_000)]) { it, _ in
            let (head, bytes) = try await it.fetch("/a", [.range: "bytes=1000-200999"])
            try checkEqual(head.status.code, 206, "status")
            try checkEqual(head.headerFields[.contentRange], "bytes 1000-200999/1000000", "Content-Range")
            try checkEqual(bytes.count, 200_000, "bytes")
            try media.verify(bytes, at: 1000)
            try await it.log.waitUntilIdle()
            try checkEqual(it.log.rangesSent("/a"), [1000..<201_000], "ranges sent")
        },
        Case("the request's header fields are sent unchanged", ["/a": .pattern(10)]) { it, _ in
            var fields: HTTPFields = [.range: "bytes=0-1", .ifRange: "\"v0\"", .authorization: "Bearer x"]
            fields[.cookie] = "a=b"
            fields[.userAgent] = "Player/1"
            fields[.acceptEncoding] = "identity"
            if let name = HTTPField.Name("X-Key") { fields[name] = "k" }
            _ = try await it.fetch("/a", fields)
            let heard = try await it.log.first { $0.isOver }.headerFields
            for field in fields { try checkEqual(heard[field.name], field.value, field.name.rawName) }
        },
        Case("Accept-Encoding is identity when the request has none (A19)", ["/a": .pattern(10)]) { it, _ in
            _ = try await it.fetch("/a")
            try checkEqual(it.log.exchanges.first?.headerFields[.acceptEncoding], "identity", "Accept-Encoding")
        },
        Case("an encoded body is delivered unchanged (A19)", needs: [.encodedBodies], ["/a": .pattern(1000, .gzip)]) {
            it, _ in
            let (head, bytes) = try await it.fetch("/a")
            try checkEqual(head.headerFields[.contentEncoding], "gzip", "Content-Encoding")
            try checkEqual(Array(bytes.prefix(2)), [0x1F, 0x8B], "the first bytes")
            try checkEqual(bytes.count, 1023, "bytes")
        },
        Case(
            "a response with an error status is delivered, not thrown as an error",
            ["/busy": .pattern(10, .status(503, ["Retry-After": "7"])), "/end": .pattern(10, .rangeNotSatisfiable)]
        ) { it, _ in
            let busy = try await it.fetch("/busy").head
            try checkEqual(busy.status.code, 503, "status")
            try checkEqual(busy.headerFields[.retryAfter], "7", "Retry-After")
            try checkEqual(try await it.fetch("/missing").head.status.code, 404, "status")
            let end = try await it.fetch("/end", [.range: "bytes=10-"]).head
            try checkEqual(end.status.code, 416, "status")
            try checkEqual(end.headerFields[.contentRange], "bytes */10", "Content-Range")
            try checkEqual(try await it.fetch("/end", [.ifNoneMatch: "\"v1\""]).head.status.code, 304, "status")
        },
        Case("an empty body ends immediately", ["/a": .pattern(0)]) { it, _ in
            let (head, bytes) = try await it.fetch("/a")
            try checkEqual(head.status.code, 200, "status")
            try checkEqual(bytes, [], "body")
        },
        Case(
            "a body without a length is received completely (A22)",
            ["/chunked": .pattern(300_000, .noLength(.chunked)), "/closed": .pattern(300_000, .noLength(.close))]
        ) { it, _ in
            for path in ["/chunked", "/closed"] {
                let (head, bytes) = try await it.fetch(path)
                try checkEqual(head.headerFields[.contentLength], nil, "Content-Length")
                try checkEqual(bytes.count, 300_000, "bytes of \(path)")
                try media.verify(bytes, at: 0)
            }
        },
        Case(
            "an inconsistent response is delivered, not evaluated (A6, A7)",
            [
                "/a": .pattern(1000, .contentRangeShifted(by: 5), .extraBytes(3)),
                "/b": .pattern(1000, .alwaysPartialContent),
            ]
        ) { it, _ in
            let (head, bytes) = try await it.fetch("/a", [.range: "bytes=0-9"])
            try checkEqual(head.headerFields[.contentRange], "bytes 5-14/1000", "Content-Range")
            try checkEqual(bytes, media.bytes(0..<13), "body")
            try checkEqual(try await it.fetch("/b").head.status.code, 206, "status")
        },
        Case("concurrent requests each receive their own response", ["/a": .pattern(1_000_000)]) { it, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<40 as Range<Int64> {
                    group.addTask {
                        let start = index * 20_000
                        let (_, bytes) = try await it.fetch("/a", [.range: "bytes=\(start)-\(start + 99_999)"])
                        try checkEqual(bytes.count, 100_000, "bytes")
                        try media.verify(bytes, at: start)
                    }
                }
                try await group.waitForAll()
            }
        },
    ]
}

extension UpstreamContract {
    /// The cases for redirects (RFC 9110 §15.4, A21).
    static let redirectCases: [Case] = [
        redirectCase(
            "redirects are followed to the final URL",
            [
                "/0": .redirect(to: "1?x=y", status: 301), "/1": .redirect(to: "/dir/2", status: 302),
                "/dir/2": .redirect(to: "../3", status: 303), "/3": .redirect(to: "/4", status: 307),
                "/4": .redirect(to: "/a", status: 308), "/a": .pattern(1_000_000),
            ]
        ) { it, _ in
            let response = try await it.open("/0", [.range: "bytes=5-9"])
            try checkEqual(response.head.status.code, 206, "status")
            try checkEqual(response.url.absoluteString, it.url("/a").absoluteString, "URL")
            try checkEqual(try await response.body.collect(), media.bytes(5..<10), "body")
            try checkEqual(it.log.exchanges.map(\.path), ["/0", "/1", "/dir/2", "/3", "/4", "/a"], "paths")
            try checkEqual(it.log.exchanges[1].query, "x=y", "query")
        },
        redirectCase("redirects are followed again for each request", ["/0": .redirect(to: "/a"), "/a": .pattern(10)]) {
            it, _ in
            for _ in 0..<3 { _ = try await it.fetch("/0") }
            try checkEqual(it.log.exchanges("/0").count, 3, "requests to the first URL")
        },
        redirectCase(
            "loops, endless chains and redirects to other schemes are rejected",
            longChain.merging([
                "/self": .redirect(to: "/self"), "/ping": .redirect(to: "/pong"), "/pong": .redirect(to: "/ping"),
                "/file": .redirect(to: "file:///etc/passwd"), "/ftp": .redirect(to: "ftp://127.0.0.1/a"),
                "/nowhere": .redirect(to: "http:///"),
            ]) { first, _ in first }
        ) { it, _ in
            for path in ["/self", "/ping", "/0", "/file", "/ftp", "/nowhere"] {
                do {
                    _ = try await it.open(path)
                    throw ContractFailure("the request for \(path) received a response")
                } catch let error as UpstreamError {
                    try checkEqual(error.code, .invalidRedirect, "code for \(path)")
                    try check(!error.isTransient, "the error for \(path) is transient")
                }
            }
            try checkEqual(it.log.exchanges("/self").count, 1, "requests to /self")
            try checkEqual(it.log.exchanges("/21").count, 0, "requests past the limit")
        },
        redirectCase("a redirect without a Location is returned as the response", ["/a": .pattern(10, .status(302))]) {
            it, _ in
            try checkEqual(try await it.open("/a").head.status.code, 302, "status")
        },
        redirectCase(
            "all header fields are sent again after a redirect within the origin",
            ["/0": .redirect(to: "/a"), "/a": .pattern(1000)]
        ) {
            it, _ in
            let fields = try secretFields()
            _ = try await it.fetch("/0", fields)
            let heard = try await it.log.first { $0.path == "/a" && $0.isOver }.headerFields
            for field in fields { try checkEqual(heard[field.name], field.value, field.name.rawName) }
        },
    ]

    /// A chain of 21 redirects, one more than a transport follows by default. It starts at `/0`.
    private static let longChain: [String: OriginResource] = Dictionary(
        uniqueKeysWithValues: (0...20).map { ("/\($0)", .redirect(to: "/\($0 + 1)")) } + [("/21", .pattern(10))])

    private static func redirectCase(
        _ description: String, _ resources: [String: OriginResource],
        _ body: @escaping @Sendable (Fixture, Settings) async throws -> Void
    ) -> Case {
        Case(description, needs: [.redirects], resources, body)
    }

    static func secretFields() throws -> HTTPFields {
        var fields: HTTPFields = [.range: "bytes=0-1", .ifRange: "\"v1\"", .userAgent: "Player/1"]
        fields[.acceptEncoding] = "identity"
        fields[.authorization] = "Bearer x"
        fields[.cookie] = "session=1"
        fields[.proxyAuthorization] = "Basic y"
        if let name = HTTPField.Name("X-Api-Key") { fields[name] = "k" }
        return fields
    }
}
