#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("CachingQueue", .timeLimit(.minutes(10)))
@MainActor
struct CachingQueueTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private func name(_ number: Int) -> String { "\(number).mp3" }

    /// Creates an origin with `count` short audio files.
    private func upstream(_ count: Int, seconds: Int = 2) async throws -> MemoryUpstream {
        let bytes = try await SampleMedia.mp3.bytes(seconds: seconds)
        return MemoryUpstream(Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\(name($0))", .init(bytes)) }))
    }

    private func player(_ cache: MediaCache) -> CachingPlayer {
        let avPlayer = AVQueuePlayer()
        avPlayer.headless = .untimed
        return CachingPlayer(in: cache, avPlayer: avPlayer)
    }

    private func sources(_ numbers: Range<Int>) -> [MediaSource] {
        numbers.map { MediaSource(url: address(name($0))) }
    }

    @Test("Z14: a queue of 200 tracks plays to its end while random entries are removed; no byte is fetched twice")
    func playsThrough() async throws {
        let upstream = try await upstream(200)
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let player = player(cache)
        let queue = player.queue
        let entries = queue.append(contentsOf: sources(0..<200))
        player.rate = 2
        player.play()
        var random = SplitMix(5)
        var played: [CachingQueue.Entry.ID] = []
        var removed: Set<CachingQueue.Entry.ID> = []
        while player.status != .ended, !Task.isCancelled {
            let current = try #require(queue.currentEntry)
            #expect(!removed.contains(current.id), "removed entries do not play")
            played.append(current.id)
            // The removed entry may be the current one.
            let gone = queue.entries.randomElement(using: &random).map { [$0.id] } ?? []
            if queue.count > 1 {
                queue.remove(gone)
                removed.formUnion(gone)
            }
            #expect(player.avPlayer.items().count <= 2)
            let now = queue.currentEntry?.id
            await observed { queue.currentEntry?.id != now || player.status == .ended || player.status == .failed }
            #expect(player.status != .failed, "\(String(describing: player.error))")
        }
        #expect(player.rate == 2)
        let order = played.compactMap { id in entries.firstIndex { $0.id == id } }
        #expect(order == order.sorted() && Set(order).count == order.count && played.count > 60)
        let length = Int64(try await SampleMedia.mp3.bytes(seconds: 2).count)
        #expect((0..<200).allSatisfy { upstream.sent("/\(name($0))") <= length })
        await cache.close()
    }

    @Test("Z14: upcoming entries are preloaded, and a preload is cancelled when its entry is no longer upcoming")
    func preloads() async throws {
        let upstream = try await upstream(7)
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let player = player(cache)
        let entries = player.queue.append(contentsOf: sources(0..<7))
        func preload(_ entry: CachingQueue.Entry) async {
            for await state in cache.media(for: entry.source).states where state.storedByteCount > 0 { return }
        }
        for entry in entries[0...3] { await preload(entry) }
        #expect(upstream.sent("/4.mp3") == 0)
        // This entry is not the next one, because the player itself loads the start of the next entry.
        upstream.hold("/6.mp3", from: 0)
        player.queue.skip(to: entries[4].id)
        await preload(entries[5])
        await upstream.isHeld("/6.mp3")
        // The entry is no longer among the upcoming entries, so its preload is cancelled.
        player.queue.skip(to: entries[0].id)
        await upstream.isQuiet("/6.mp3")
        player.load([])
        await cache.close()
    }

    @Test("Z14: entries play in the order that next, previous, the repeat mode and shuffling determine")
    func order() async throws {
        let upstream = try await upstream(3)
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let player = player(cache)
        let queue = player.queue
        let entries = queue.append(contentsOf: sources(0..<3))
        #expect(queue.currentEntry?.id == entries[0].id && queue.nextEntry?.id == entries[1].id)
        #expect(queue.next() && queue.currentEntry?.id == entries[1].id && queue.player.items().count == 2)
        #expect(queue.previous() && !queue.previous() && queue.currentEntry?.id == entries[0].id)
        queue.repeatMode = .one
        player.play()
        for _ in 0..<3 {
            await observed { player.currentTime > 0.5 }
            await observed { player.currentTime < 0.2 }
            #expect(queue.currentEntry?.id == entries[0].id && player.playWhenReady)
        }
        queue.repeatMode = .all
        queue.isShuffled = true
        var seen: Set<CachingQueue.Entry.ID> = []
        while seen.count < 3, !Task.isCancelled {
            let now = try #require(queue.currentEntry?.id)
            seen.insert(now)
            await observed { queue.currentEntry?.id != now }
        }
        queue.repeatMode = .off
        queue.isShuffled = false
        queue.skip(to: entries[2].id)
        await observed { player.status == .ended }
        #expect(queue.currentEntry?.id == entries[2].id && !queue.next())
        await cache.close()
    }

    @Test("Z14: a queue of 10,000 entries has at most two items in its AVPlayer at a time")
    func longList() async throws {
        let upstream = try await upstream(1)
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let player = player(cache)
        let queue = player.queue
        let entries = queue.append(contentsOf: Array(repeating: MediaSource(url: address(name(0))), count: 10_000))
        queue.skip(to: entries[9_998].id)
        player.play()
        await observed { player.status == .ended }
        #expect(queue.currentEntry?.id == entries[9_999].id)
        queue.isShuffled = true
        queue.move(entries[0].id, to: 5_000)
        queue.remove(entries[100..<9_900].map(\.id))
        #expect(queue.count == 200 && player.avPlayer.items().count <= 2)
        queue.removeAll()
        #expect(player.status == .idle && player.avPlayer.items() == [])
        await cache.close()
    }
}
#endif
