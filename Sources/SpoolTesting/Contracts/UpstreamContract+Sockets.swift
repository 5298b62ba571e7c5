#if Tools
import Foundation
import HTTPTypes
public import Spool
import SpoolOrigin

extension UpstreamContract.Factory {
    /// Returns a factory of fixtures for a transport and an `OriginServer` on real sockets. This method requires the
    /// `Tools` package trait.
    public static func sockets(
        _ upstream: @escaping @Sendable (UpstreamContract.Settings) throws -> any Upstream
    ) -> Self {
        Self { resources, settings in
            let origin = try await OriginServer.start(resources)
            return UpstreamContract.Fixture(
                upstream: try upstream(settings), log: origin.log, url: { origin.url($0, host: $1) },
                release: { origin.release($0) }, connectionCount: { origin.connectionCount },
                stop: { await origin.stop() })
        }
    }
}

extension UpstreamContract {
    /// The cases that need a second origin in addition to that of the fixture.
    static let twoOriginCases: [Case] = [
        Case("credentials are not sent after a redirect to another origin", needs: [.redirects], ["/a": .pattern(1000)])
        {
            target, settings in
            try await withRedirectAway(to: target.url("/a", "localhost"), target, settings)
        }
    ]

    private static func withRedirectAway(to url: URL, _ target: Fixture, _ settings: Settings) async throws {
        let front = try await OriginServer.start(["/0": .redirect(to: url.absoluteString)])
        let fields = try secretFields()
        let response = try await target.upstream.open(UpstreamRequest(url: front.url("/0"), headerFields: fields))
        try checkEqual(try await response.body.collect(), media.bytes(0..<2), "body")
        await front.stop()
        let heard = try await target.log.first { $0.path == "/a" && $0.isOver }.headerFields
        for name in [.range, .ifRange, .acceptEncoding, .userAgent] as [HTTPField.Name] {
            try checkEqual(heard[name], fields[name], name.rawName)
        }
        for field in fields where ![.range, .ifRange, .acceptEncoding, .userAgent].contains(field.name) {
            try checkEqual(heard[field.name], nil, "\(field.name.rawName) at the second origin")
        }
        let sent = front.log.exchanges.first?.headerFields[.authorization]
        try checkEqual(sent, "Bearer x", "Authorization at the first origin")
    }
}
#endif
