import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Spool
import SpoolHTTP
import SpoolProxy
import SpoolTesting
import Testing

/// Tests of a server's live page in Chromium. `Scripts/dashboard.py` contains the checks.
@Suite(
    "Live page in a browser", .timeLimit(.minutes(10)), .serialized,
    .enabled(if: DebianBrowser.isInstalled, "Chromium, chromedriver or python3-selenium is not installed"))
struct LivePageTests {
    @Test(
        "D75, D101: each view of the live page shows its data, explains settings, and can be used with the keyboard")
    func views() async throws { try await run("library", "filters", "keyboard", "resource", "now", "settings") }

    @Test("D76: the live page shows a lost connection and reconnects, and neither URLs nor cookies contain the token")
    func connection() async throws { try await run("loss", "sharing", "token", "links") }

    @Test("D100: if the server ends the live page's connection, the page shows the reason and reconnects")
    func limits() async throws { try await run("limit", "silence") }

    @Test(
        "D77: text and graphics have enough contrast, controls have names, and the layout fits narrow and RTL pages"
    )
    func accessibility() async throws {
        try await run(
            "contrast", "graphics", "forced", "names", "focus", "covered", "narrow", "large", "rtl", "motion", "locale")
    }

    @Test("D78: the live page renders within its time limits, even with hundreds of resources")
    func drawing() async throws { try await run("paint", "frames", resourceCount: 500) }

    @Test(
        "D79: the page shows stored media, saved bytes and causes of slow playback, and stores media for offline use"
    )
    func paths() async throws { try await run("paths", "dialogs") }

    @Test("D105: maps, waterfalls and filters agree with the stored media, and the playhead follows playback")
    func contents() async throws { try await run("menus", "maps", "waterfall", "playhead") }

    @Test("D106: operators can save, preload and unpin selected media, and change the capacity, on the live page")
    func changes() async throws { try await run("download", "preload", "unpin", "capacity") }

    /// Runs some of the script's checks on a server with stored media.
    ///
    /// - Parameter resourceCount: The number of small resources in addition to the media.
    private func run(_ checks: String..., resourceCount: Int = 0) async throws {
        try await LivePageStage.run(with: resourceCount) { page, token, preload in
            let script = PlayerScript.path("dashboard.py")
            let result = try await Tool(at: URL(fileURLWithPath: DebianBrowser.python)).run(
                [script, page, token] + checks + ["--preload", preload], environment: ["PYTHONDONTWRITEBYTECODE": "1"])
            #expect(result.status == 0, "\(result.text)")
        }
    }
}

/// Chromium and the Python module that controls it, as Debian installs them.
private enum DebianBrowser {
    /// The Python interpreter for which the package python3-selenium is installed.
    static let python = "/usr/bin/python3"

    static let isInstalled: Bool = {
        let selenium = "/usr/lib/python3/dist-packages/selenium"
        return Tool("chromium") != nil && Tool("chromedriver") != nil
            && [python, selenium].allSatisfy { FileManager.default.fileExists(atPath: $0) }
    }()
}

/// A server whose cache contains media of several types and of two origins. Its readers have waited for each of the
/// reasons that the page shows.
private enum LivePageStage {
    /// Calls `body` with the URL of the page, the operator's token, and the URL of a video that is not stored.
    static func run(with count: Int, _ body: (String, String, String) async throws -> Void) async throws {
        let video = OriginResource(.file(try await SampleMedia.mp4.file()), contentType: "video/mp4")
        let stream = try await Presentation.hlsTransportStream.files()
        var resources = try stream.resources()
        resources["/talk.mp4"] = video
        resources["/trip.mp4"] = video
        resources["/sound.mp3"] = OriginResource(.file(try await SampleMedia.mp3.file()))
        resources["/part.mp4"] = video
        for index in 0..<count { resources["/small\(index).mp3"] = OriginResource(.data(Data(count: 2000))) }
        // Each wait is longer than a quarter of a second.
        var slow = video
        slow.rules = [.always(.drip(100_000, every: .milliseconds(400)))]
        resources["/slow.mp4"] = slow
        resources["/evicted.mp4"] = slow
        var failing = video
        failing.rules = [.first(2, .truncate(after: nil))]
        resources["/retried.mp4"] = failing
        try await OriginServer.run(resources) { origin in
            let scratch = try ScratchDirectory()
            let token = OperatorToken.random()
            var (configuration, settings) = (ProxyConfiguration(), MediaCache.Configuration())
            configuration.port = 0
            configuration.operatorSettings = OperatorSettings(
                token: token,
                settings: [
                    .init("capacity", .none, .default, editable: true),
                    .init(
                        "freshness", .text("immutable"), .commandLine, choices: ["http", "immutable"],
                        option: "--freshness"),
                    .init(
                        "eviction", .text("standard"), .default, choices: ["standard", "lru"], option: "--eviction"),
                    .init("allowedHosts", .list([]), .default, editable: true, option: "--allow-host"),
                    .init("maxAge", .number(172_800), .commandLine, option: "--max-age"),
                    .init("keepFree", .number(0), .default, option: "--keep-free"),
                    .init("quotas", .list(["[::1]=2000000000", "a.example=5000"]), .commandLine, option: "--quota"),
                ])
            settings.freshness = .immutable
            configuration.configure(&settings)
            let cache = try await MediaCache.opened(
                directory: URL(fileURLWithPath: scratch.file("cache")), upstream: HTTPUpstream.standard(),
                configuration: settings)
            let server = try ProxyServer(cache: cache, configuration: configuration)
            try await server.start()
            do {
                try await prepare(server, cache, origin, stream, count)
                let page = try #require(server.pageAddress)
                try await body(page, token.text, origin.url("/trip.mp4").absoluteString)
            } catch {
                await server.stop()
                await cache.close()
                throw error
            }
            await server.stop()
            await cache.close()
        }
    }

    private static func prepare(
        _ server: ProxyServer, _ cache: MediaCache, _ origin: OriginServer, _ stream: Presentation.Files,
        _ count: Int
    ) async throws {
        func get(_ path: String, host: String = "127.0.0.1", range: String? = nil) async throws {
            let url = try #require(server.url(for: origin.url(path, host: host)))
            var request = HTTPClientRequest(url: url.absoluteString)
            if let range { request.headers.add(name: "Range", value: range) }
            let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
            for try await _ in response.body {}
        }
        try await get("/evicted.mp4")
        try await cache.evict(to: 0)
        try await get("/part.mp4", range: "bytes=0-9999")
        try await get("/sound.mp3", host: "localhost")
        for path in ["/slow.mp4", "/evicted.mp4", "/retried.mp4", "/talk.mp4", "/talk.mp4"] { try await get(path) }
        let playlist = try String(contentsOf: stream.folder.appendingPathComponent("stream.m3u8"), encoding: .utf8)
        try await get(stream.entry)
        for line in playlist.split(separator: "\n") where !line.hasPrefix("#") { try await get("/\(line)") }
        for index in 0..<count { try await get("/small\(index).mp3") }
        try await cache.pin(cache.key(for: origin.url("/talk.mp4")))
    }
}
