#if os(Linux)
import AVFoundation
import Foundation
import HTTPTypes
import Spool
import SpoolAVFoundation
import SpoolHTTP
import SpoolSources
import SpoolTesting
import Synchronization
import Testing

/// Playback from third-party servers in a real player while passwords change and links expire.
@Suite("Cloud storage in a real player", .timeLimit(.minutes(10)), .serialized)
@MainActor
struct CloudPlayTests {
    private static let seconds = 60

    /// Returns a cache that sends small requests, so that a seek leaves missing ranges in media of a few hundred
    /// kilobytes.
    private func cache(_ now: @escaping @Sendable () -> Date) -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.readAhead.initialRequestSize = 64 << 10
        configuration.readAhead.maximumRequestSize = 64 << 10
        configuration.readAhead.maximumReadAhead = 128 << 10
        return MediaCache.inMemory(upstream: HTTPUpstream.standard(), configuration: configuration, now: now)
    }

    /// Plays two files concurrently with seeks, calls `change` during playback, and plays both files to their ends.
    /// Checks that all bytes are correct, and that each is fetched once.
    private func play(
        _ sources: [MediaSource], of bytes: Data, now: @escaping @Sendable () -> Date = { Date() },
        _ change: () async throws -> Void
    ) async throws {
        let cache = cache(now)
        let plays = sources.map { CloudPlay($0, in: cache) }
        for play in plays { #expect(await play.seek(to: 2)) }
        let before = cache.statistics.bytesFromOrigin
        try await change()
        for target in [50, 25, 55] as [Double] {
            async let first = plays[0].seek(to: target)
            async let second = plays[1].seek(to: target)
            #expect(await (first, second) == (true, true), "to \(target)")
        }
        for play in plays { #expect(await play.end() == nil) }
        let length = Int64(bytes.count)
        #expect(before < 2 * length, "too many bytes were received before the change")
        #expect(cache.statistics.bytesFromOrigin > before)
        for source in sources { #expect(try await cache.media(for: source).data(in: 0..<length) == bytes) }
        #expect(cache.statistics.bytesFromOrigin == 2 * length)
        await cache.close()
    }

    @Test(
        "WebDAV playback continues after a password change, and the new password is requested only once",
        .enabled(if: !WebDAVServers.present.isEmpty, "no WebDAV server is installed"), arguments: WebDAVServers.present)
    func webDAV(kind: WebDAVServers) async throws {
        let scratch = try ScratchDirectory()
        let file = try await SampleMedia.wav.file(seconds: Self.seconds)
        let root = scratch.file("files")
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for name in ["a.wav", "b.wav"] {
            try FileManager.default.copyItem(atPath: file.path, toPath: "\(root)/\(name)")
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: "\(root)/\(name)")
        }
        for folder in [scratch.path, root] {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        }
        let server = try await kind.start(over: root, in: scratch)
        let password = Mutex("pass w")
        let questions = Mutex<[MediaSource.ResolutionReason]>([])
        let account = HeaderProvider { reason in
            questions.withLock { $0.append(reason) }
            let credentials = Data("u:\(password.withLock { $0 })".utf8).base64EncodedString()
            return HeaderProvider.Fields([.authorization: "Basic \(credentials)"])
        }
        let cloud = WebDAV(rootURL: server.url(""), account: account, upstream: HTTPUpstream.standard())
        try await play(["a.wav", "b.wav"].map(cloud.media), of: Data(contentsOf: file)) {
            #expect(questions.withLock { $0.count } == 1)
            // The client's password is changed first, so that after a rejection the client finds the new password.
            password.withLock { $0 = "new w" }
            try kind.setPassword(.second, in: scratch)
        }
        // Many transfers were rejected, but the new password was requested only once.
        #expect(questions.withLock { $0.count } == 2)
    }

    @Test(
        "S3 playback continues when links expire according to the device's clock, or are rejected earlier by the server",
        .enabled(if: !S3Server.present.isEmpty, "no S3 server is installed"), arguments: S3Server.present,
        [false, true])
    func s3(kind: S3Server, isClockSlow: Bool) async throws {
        let scratch = try ScratchDirectory()
        let bytes = try Data(contentsOf: await SampleMedia.wav.file(seconds: Self.seconds))
        let server = try await kind.start(in: scratch)
        try await S3Server.put("films", Data(), at: server)
        for name in ["films/a%20b.wav", "films/c.wav"] { try await S3Server.put(name, bytes, at: server) }
        let questions = Mutex<[MediaSource.ResolutionReason]>([])
        // If the server's clock is ten seconds ahead, a link for twelve seconds is valid for only one or two seconds.
        // The server counts whole seconds.
        let now: @Sendable () -> Date = { Date(timeIntervalSinceNow: isClockSlow ? -10 : 0) }
        let bucket = try S3Bucket(
            "films", region: "us-east-1", endpoint: server.url(""), addressing: .path, lifetime: isClockSlow ? 12 : 3,
            now: now
        ) { reason in
            questions.withLock { $0.append(reason) }
            return S3Server.credentials
        }
        try await play(["a b.wav", "c.wav"].map(bucket.media), of: bytes, now: now) {
            try await Task.sleep(for: .seconds(3.5))  // Waits until a link expires by the real server's clock.
        }
        let isRefused = isClockSlow && kind.checksSignatures
        let reasons = questions.withLock { $0 }
        #expect(isRefused ? reasons.count >= 2 : reasons.count == 1, "\(reasons)")
    }
}

/// Playback of one item at five times normal speed, without video or audio.
@MainActor private final class CloudPlay {
    let player: AVPlayer
    private let endings: AsyncStream<Void>
    private var tokens: [any NSObjectProtocol] = []

    init(_ source: MediaSource, in cache: MediaCache) {
        let item = AVPlayerItem(caching: source, in: cache)
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        endings = stream
        for name in [Notification.Name.AVPlayerItemDidPlayToEndTime, .AVPlayerItemFailedToPlayToEndTime] {
            tokens.append(
                NotificationCenter.default.addObserver(forName: name, object: item, queue: nil) { _ in
                    continuation.yield(())
                })
        }
        player = AVPlayer(playerItem: item)
        player.headless = AVPlayer.HeadlessMode(speed: 5)
        player.play()
    }

    func seek(to seconds: Double) async -> Bool {
        await player.seek(to: CMTime(seconds: seconds, preferredTimescale: 600))
    }

    /// Waits for the end, and stops playback.
    ///
    /// - Returns: The error of the item if it failed; otherwise `nil`.
    func end() async -> (any Error)? {
        for await _ in endings { break }
        tokens.forEach(NotificationCenter.default.removeObserver)
        defer { player.replaceCurrentItem(with: nil) }
        return player.currentItem?.error
    }
}
#endif
