import Foundation
import Spool
import SpoolHTTP
import SpoolOrigin
import SpoolProxy
import SpoolTesting
import Testing

/// A cache in memory, alone or with a server in front of it.
enum CompatibilityStage {
    /// Calls `body` with a running server and its empty cache.
    static func server<R>(
        freshness: FreshnessPolicy = .http, origin: URL? = nil, _ body: (ProxyServer, MediaCache) async throws -> R
    ) async throws -> R {
        var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
        configuration.port = 0
        configuration.threadCount = 1
        configuration.origin = origin
        settings.freshness = freshness
        configuration.configure(&settings)
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: settings)
        let server = try ProxyServer(cache: cache, configuration: configuration)
        try await server.start()
        return try await closing(cache, server) { try await body(server, cache) }
    }

    /// Calls `body` with an empty cache, without a server.
    static func cache<R>(
        upstream: (any Upstream)? = nil, clock: some Clock<Duration> = ContinuousClock(),
        configure: (inout MediaCache.Configuration) -> Void = { _ in }, _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        var settings = MediaCache.Configuration()
        configure(&settings)
        let cache = MediaCache.inMemory(
            upstream: upstream ?? HTTPUpstream.standard(), configuration: settings, clock: clock)
        return try await closing(cache) { try await body(cache) }
    }

    /// Calls `body`, and then stops the server and closes the cache.
    private static func closing<R>(
        _ cache: MediaCache, _ server: ProxyServer? = nil, after body: () async throws -> R
    ) async throws -> R {
        let result: Result<R, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        await server?.stop()
        await cache.close()
        return try result.get()
    }
}

/// Records an issue if bytes differ. `#expect` would take minutes to describe the differences between large arrays.
func expectBytes(
    _ received: [UInt8]?, _ expected: [UInt8], _ place: String = "", at location: SourceLocation = #_sourceLocation
) {
    guard received != expected else { return }
    let different = zip(received ?? [], expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    let place = place.isEmpty ? "" : place + ": "
    Issue.record(
        "\(place)\(received?.count ?? 0) bytes instead of \(expected.count), first difference at \(different ?? -1)",
        sourceLocation: location)
}

extension MediaResource {
    /// Reads the bytes from an offset to the end.
    func bytes(from offset: Int64 = 0) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await chunk in reader(.from(offset)) { chunk.withUnsafeBytes { bytes += $0 } }
        return bytes
    }
}

extension OriginRule {
    /// Returns a rule that changes the text of each response's status line and fields, after earlier rules have been
    /// applied.
    static func head(_ change: @escaping @Sendable (String) -> String) -> OriginRule {
        OriginRule(
            0..<Int.max,
            revise: { response in
                let previous = response.rewriteHead
                response.rewriteHead = { head in
                    Array(change(previous.map { String(decoding: $0(head), as: UTF8.self) } ?? head).utf8)
                }
            })
    }

    /// Returns a rule that adds a line after the status line of each response.
    static func line(_ line: String) -> OriginRule {
        .head { head in
            guard let end = head.firstRange(of: "\r\n") else { return head }
            return head[..<end.upperBound] + line + "\r\n" + head[end.upperBound...]
        }
    }
}

extension Data {
    /// Returns frames of MPEG audio at 128 kbit/s, without a tag.
    static func mpegAudio(frames: Int) -> Data {
        // Bytes with the value 0xFF could be mistaken for the start of a frame.
        let body = PatternBytes(seed: 5, length: 413).bytes(0..<413).map { $0 == 0xFF ? 0 : $0 }
        let frame: [UInt8] = [0xFF, 0xFB, 0x90, 0x00] + body
        var data = Data()
        for _ in 0..<frames { data += frame }
        return data
    }

    /// Returns an ID3v2.3 tag with an image of this size.
    static func id3Tag(imageSize: Int) -> Data {
        var image = Data("\0image/png\0\u{3}\0".utf8)
        image += Data(repeating: 0x11, count: imageSize)
        var frame = Data("APIC".utf8)
        for shift in [24, 16, 8, 0] { frame.append(UInt8(image.count >> shift & 0xFF)) }
        frame += [0, 0]
        frame += image
        var tag = Data("ID3\u{3}\0\0".utf8)
        for shift in [21, 14, 7, 0] { tag.append(UInt8(frame.count >> shift & 0x7F)) }
        return tag + frame
    }
}
