import Foundation
import Spool
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// Media at an origin with a fault that players accept.
///
/// The media is requested first without Spool, then through the server, and then with readers in an app. The same bytes
/// must be received in each of these ways.
struct Situation: Sendable {
    /// The origin's resources.
    var resources: [String: OriginResource]
    /// The path of the media, with its query.
    var path = "/media"
    /// The bytes that a client receives.
    var media: OriginContent
    /// The offsets of seeks.
    var seeks = [100_000, 4096]
    /// Whether an app can play the media again without the origin.
    var isStored = true

    /// Creates a situation with one resource.
    init(
        _ resource: OriginResource, seeks: [Int] = [100_000, 4096], isStored: Bool = true
    ) {
        resources = ["/media": resource]
        media = resource.content
        (self.seeks, self.isStored) = (seeks, isStored)
    }

    /// Creates a situation with patterned media and with rules for its responses.
    init(_ rules: OriginRule..., etag: String? = "\"v1\"", seeks: [Int] = [100_000, 4096], isStored: Bool = true) {
        let media = OriginContent.pattern(PatternBytes(seed: 7, length: 150_000))
        self.init(OriginResource(media, etag: etag, rules: rules), seeks: seeks, isStored: isStored)
    }

    /// Checks the media in all three ways: without Spool, through the server, and in an app.
    func check(at location: SourceLocation = #_sourceLocation) async throws {
        try await OriginServer.run(resources) { origin in
            try await checkClient(origin.url(path), "directly", location)
        }
        try await checkServer(at: location)
        try await checkApp(at: location)
    }

    /// Checks the responses of a server, twice.
    func checkServer(at location: SourceLocation = #_sourceLocation) async throws {
        try await OriginServer.run(resources) { origin in
            try await CompatibilityStage.server { server, _ in
                let url = try #require(server.url(for: origin.url(path)))
                try await checkClient(url, "through the server", location)
                try await checkClient(url, "through the server again", location)
            }
        }
    }

    /// Checks the bytes of readers. If the media is stored, checks them again without the origin.
    func checkApp(at location: SourceLocation = #_sourceLocation) async throws {
        try await OriginServer.run(resources) { origin in
            try await CompatibilityStage.cache { cache in
                let resource = cache.media(for: origin.url(path))
                try await checkReaders(resource, "in an app", location)
                guard isStored else { return }
                await origin.stop()
                try await checkReaders(resource, "without the origin", location)
            }
        }
    }

    /// Returns the bytes from an offset to the end.
    func bytes(from offset: Int) -> [UInt8] { media.bytes(Int64(offset)..<media.length) }

    private func checkClient(_ url: URL, _ way: String, _ location: SourceLocation) async throws {
        let whole = try await PlainClient().get(url)
        expectBytes(whole.media(from: 0), bytes(from: 0), "\(way): \(whole.status)", at: location)
        for seek in seeks {
            let part = try await PlainClient().get(url, range: "bytes=\(seek)-")
            expectBytes(part.media(from: seek), bytes(from: seek), "\(way): \(part.status)", at: location)
        }
    }

    private func checkReaders(_ resource: MediaResource, _ way: String, _ location: SourceLocation) async throws {
        for offset in [0] + seeks {
            let bytes = try await resource.bytes(from: Int64(offset))
            expectBytes(bytes, self.bytes(from: offset), "\(way), from \(offset)", at: location)
        }
    }
}
