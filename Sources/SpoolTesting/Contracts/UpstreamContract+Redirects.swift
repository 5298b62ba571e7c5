import Foundation
import HTTPTypes
import Spool
import SpoolOrigin

extension UpstreamContract {
    /// How an upstream follows redirects (RFC 9110 §15.4, A21).
    static let redirectCases: [Case] = [
        redirectCase(
            "redirects are followed to the URL that responds",
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
        redirectCase("redirects are followed afresh each time", ["/0": .redirect(to: "/a"), "/a": .pattern(10)]) {
            it, _ in
            for _ in 0..<3 { _ = try await it.fetch("/0") }
            try checkEqual(it.log.exchanges("/0").count, 3, "requests to the first URL")
        },
        redirectCase(
            "circles, endless chains and redirects away from HTTP are refused",
            longChain.merging([
                "/self": .redirect(to: "/self"), "/ping": .redirect(to: "/pong"), "/pong": .redirect(to: "/ping"),
                "/file": .redirect(to: "file:///etc/passwd"), "/ftp": .redirect(to: "ftp://127.0.0.1/a"),
                "/nowhere": .redirect(to: "http:///"),
            ]) { first, _ in first }
        ) { it, _ in
            for path in ["/self", "/ping", "/0", "/file", "/ftp", "/nowhere"] {
                do {
                    _ = try await it.open(path)
                    throw ContractFailure("\(path) got a response")
                } catch let error as UpstreamError {
                    try checkEqual(error.code, .redirects, "code for \(path)")
                    try check(!error.isTransient, "the same request will fail again")
                }
            }
            try checkEqual(it.log.exchanges("/self").count, 1, "requests to /self")
            try checkEqual(it.log.exchanges("/21").count, 0, "requests past the limit")
        },
        redirectCase("a redirect without a URL is a response", ["/a": .pattern(10, .status(302))]) { it, _ in
            try checkEqual(try await it.open("/a").head.status.code, 302, "status")
        },
        redirectCase(
            "all fields follow a redirect within the origin", ["/0": .redirect(to: "/a"), "/a": .pattern(1000)]
        ) {
            it, _ in
            let fields = try secretFields()
            _ = try await it.fetch("/0", fields)
            let heard = try await it.log.first { $0.path == "/a" && $0.isOver }.headerFields
            for field in fields { try checkEqual(heard[field.name], field.value, field.name.rawName) }
        },
    ]

    /// A chain of 21 redirects from `/0`, one more than an upstream follows by default.
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
