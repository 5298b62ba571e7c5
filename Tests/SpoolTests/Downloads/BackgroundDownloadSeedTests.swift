import Foundation
import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

/// Random histories of one download: the app is suspended, killed and launched again, and the system's transfers fail.
///
/// Each download consists of 0.3 to 2 MB in chunks of 64 to 192 KiB. It represents a download of 2 GB in chunks of 8
/// MiB, but is small enough to check all bytes. All waits use a clock that only the test advances.
@Suite("Background downloads with random events", .timeLimit(.minutes(60)))
struct BackgroundDownloadSeedTests {
    private static let seeds: Range<UInt64> = {
        let count = ProcessInfo.processInfo.environment["SPOOL_BACKGROUND_DOWNLOADS"].flatMap { UInt64($0) }
        return 0..<(count ?? 36)
    }()

    @Test(
        "E429: a download that is suspended, killed and relaunched completes, and fetches each chunk at most twice",
        arguments: (0..<4 as Range<UInt64>))
    func random(_ part: UInt64) async throws {
        for seed in Self.seeds where seed % 4 == part { try await RandomDownload(seed).run() }
    }
}

private final class RandomDownload {
    private let seed: UInt64
    private var random: SplitMix
    private let film: PatternBytes
    private let remake: PatternBytes
    private let chunkSize: Int64
    private let stage: MemoryStage
    private let session: ScriptedSession
    private var handovers = 0
    private var isChanged = false
    private var isRemake = false

    init(_ seed: UInt64) throws {
        self.seed = seed
        random = SplitMix(seed)
        film = PatternBytes(seed: seed + 1, length: Int64(300_000 + random.below(1_700_000)))
        remake = PatternBytes(seed: seed + 1 << 32, length: Int64(300_000 + random.below(1_000_000)))
        chunkSize = Int64(1 + random.below(3)) * 65_536
        stage = try MemoryStage(["/0": OriginResource(.pattern(film))])
        session = try ScriptedSession(stage.origin)
    }

    func run() async throws {
        var lives = 1 + random.below(4)
        while lives > 0 {
            lives -= 1
            let isKilled = random.chance(2)
            if isKilled {
                try await stage.sessionThatIsKilled { cache in try await live(cache) }
            } else {
                try await stage.session { cache in try await live(cache) }
            }
            // The system continues the transfers without the app.
            try await work()
        }
        try await stage.session { cache in
            try await cache.downloads.takeBack(from: session)
            for download in try await cache.downloads.resume() {
                let state = await download.finished()
                #expect(state.isComplete, "seed \(seed): \(String(describing: state.error))")
            }
            let set = try await cache.downloads.set(Downloads.standardSet)
            #expect(set?.isComplete == true, "seed \(seed)")
            #expect(await session.transfers().isEmpty, "seed \(seed)")
            // If the download was complete before the change, the previous version remains stored.
            let validator = try await cache.media(for: stage.url("/0")).storedResource()?.validator
            isRemake = validator == "\"v2\""
        }
        #expect(!isRemake || isChanged, "seed \(seed)")
        try await stage.checkComplete(isRemake ? remake : film, "/0")
        guard !isChanged else { return }
        let again = stage.origin.log.bytesSent("/0") - session.wasted - film.length
        #expect(again <= Int64(handovers) * chunkSize, "seed \(seed): \(again) bytes, \(handovers) handovers")
    }

    /// Simulates one launch of the app, which may be suspended several times.
    private func live(_ cache: MediaCache) async throws {
        let source = MediaSource(url: stage.url("/0"))
        var downloads: [Download] = []
        // A later launch starts with the files and transfers of the previous one.
        if handovers == 0 { downloads = [try await cache.downloads.add(source)] }
        for _ in 0..<(1 + random.below(3)) as Range<Int> {
            if random.chance(2) {
                try await cache.downloads.takeBack(from: session)
                downloads = try await cache.downloads.resume()
                // The app is active until a random amount is stored.
                let wanted = Int64(random.below(Int(film.length)))
                if let download = downloads.first {
                    for await state in download.states
                    where state.phase.isFinal || state.storedByteCount >= wanted { break }
                }
            }
            handovers += 1
            try await cache.downloads.handOver(
                to: session, chunkSize: chunkSize, maximumTransfers: 1 + random.below(64))
            try await work()
        }
        // A killed process sends no more requests.
        cache.downloads.isPaused = true
    }

    /// Lets the system transfer some chunks.
    private func work() async throws {
        for _ in 0..<random.below(12) as Range<Int> {
            let fault = random.chance(6) ? ScriptedSession.Fault.allCases.randomElement(using: &random) : nil
            try await session.finish(1, fault)
        }
        if random.chance(40), !isChanged {
            isChanged = true
            stage.origin.update("/0") { [remake] resource in
                resource.content = .pattern(remake)
                resource.etag = "\"v2\""
            }
        }
        if random.chance(2) { try await session.receiveHalf() }
    }
}
