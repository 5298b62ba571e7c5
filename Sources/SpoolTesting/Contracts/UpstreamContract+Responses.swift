import Foundation
import HTTPTypes
import Spool
import SpoolOrigin

extension UpstreamContract {
    static let media = PatternBytes(length: 1_000_000)

    /// Responses that come to their end.
    static let responseCases: [Case] = [
        Case("a whole body comes in order, with its head and URL", ["/a": .pattern(1_000_000)]) { it, _ in
            let response = try await it.open("/a?q=%20x")
            try checkEqual(response.head.status.code, 200, "status")
            try checkEqual(response.head.headerFields[.eTag], "\"v1\"", "ETag")
            try checkEqual(response.head.headerFields[.contentLength], "1000000", "Content-Length")
            try checkEqual(response.url.absoluteString, it.url("/a?q=%20x").absoluteString, "URL")
            try media.verify(try await response.body.collect(), at: 0)
            try await it.log.untilQuiet()
            try checkEqual(it.log.bytesSent("/a"), 1_000_000, "bytes sent")
            try checkEqual(it.log.exchanges.first?.query, "q=%20x", "query")
        },
        Case("a range is asked for as it stands, and only it is sent", ["/a": .pattern(1_000_000)]) { it, _ in
            let (head, bytes) = try await it.fetch("/a", [.range: "bytes=1000-200999"])
            try checkEqual(head.status.code, 206, "status")
            try checkEqual(head.headerFields[.contentRange], "bytes 1000-200999/1000000", "Content-Range")
            try checkEqual(bytes.count, 200_000, "bytes")
            try media.verify(bytes, at: 1000)
            try await it.log.untilQuiet()
            try checkEqual(it.log.rangesSent("/a"), [1000..<201_000], "ranges sent")
        },
        Case("the request's fields go out as given", ["/a": .pattern(10)]) { it, _ in
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
        Case("an encoded body is handed on as it is (A19)", needs: [.encodedBodies], ["/a": .pattern(1000, .gzip)]) {
            it, _ in
            let (head, bytes) = try await it.fetch("/a")
            try checkEqual(head.headerFields[.contentEncoding], "gzip", "Content-Encoding")
            try checkEqual(Array(bytes.prefix(2)), [0x1F, 0x8B], "the first bytes")
            try checkEqual(bytes.count, 1023, "bytes")
        },
        Case(
            "a status that refuses is a response",
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
        Case("an empty body ends at once", ["/a": .pattern(0)]) { it, _ in
            let (head, bytes) = try await it.fetch("/a")
            try checkEqual(head.status.code, 200, "status")
            try checkEqual(bytes, [], "body")
        },
        Case(
            "a body without a length comes whole (A22)",
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
            "a response that contradicts itself is handed on, not evaluated (A6, A7)",
            [
                "/a": .pattern(1000, .contentRangeShifted(by: 5), .bodyLonger(by: 3)),
                "/b": .pattern(1000, .partialToEverything),
            ]
        ) { it, _ in
            let (head, bytes) = try await it.fetch("/a", [.range: "bytes=0-9"])
            try checkEqual(head.headerFields[.contentRange], "bytes 5-14/1000", "Content-Range")
            try checkEqual(bytes, media.bytes(0..<13), "body")
            try checkEqual(try await it.fetch("/b").head.status.code, 206, "status")
        },
        Case("many requests at once do not mix", ["/a": .pattern(1_000_000)]) { it, _ in
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
