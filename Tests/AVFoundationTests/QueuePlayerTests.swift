import AVFoundation
import Foundation
import Testing

@Suite("AVQueuePlayer", .timeLimit(.minutes(10)))
@MainActor
struct QueuePlayerTests {
    @Test("D47: items play in order; the next item is loaded shortly before its turn, and requests are not cancelled")
    func playsQueue() async throws {
        let delegates = try [MemoryDelegate(.mp3), MemoryDelegate(.mp4)]
        let assets = delegates.map { delegate in
            let asset = AVURLAsset(url: URL(string: "memory://test/media")!)  // The URL is valid.
            asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
            return asset
        }
        let items = assets.map { AVPlayerItem(asset: $0) }
        let player = AVQueuePlayer()
        player.headless = .untimed
        for item in items { player.insert(item, after: nil) }
        #expect(player.items() == items)
        let endOfFirst = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], items[0]) { player.play() }
        #expect(endOfFirst == .AVPlayerItemDidPlayToEndTime)
        #expect(player.currentItem === items[1])
        _ = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], items[1]) {}
        #expect(player.currentItem == nil && player.items().isEmpty)

        #expect(assets[0].requestLog.allSatisfy { !$0.isCancelled })
        let second = assets[1].requestLog
        #expect(second.map(\.kind).prefix(2) == [.contentInformation, .data])
        #expect(second.dropFirst().first?.toEnd == false)
        #expect(assets.allSatisfy { $0.contractViolations.isEmpty })
    }

    @Test("Skipping an item does not cancel its open request, but releases its libmpv handle")
    func skips() async throws {
        let delegate = SilentDelegate()
        let asset = AVURLAsset(url: URL(string: "memory://test/silent")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let items = [AVPlayerItem(asset: asset), AVPlayerItem(url: try TestMedia.mp3.file)]
        let player = AVQueuePlayer()
        player.headless = .untimed
        for item in items { player.insert(item, after: nil) }
        await delegate.asked()
        player.advanceToNextItem()
        await items[0].waitUntilReleased()
        #expect(player.currentItem === items[1])
        #expect(asset.requestLog.map(\.isCancelled) == [false])
        _ = await Listening.first(of: [.AVPlayerItemDidPlayToEndTime], items[1]) { player.play() }
        #expect(asset.contractViolations == [])
    }

    @Test("Inserting and removing items preserves the order, and an item can't be in the queue twice")
    func editing() throws {
        let url = try TestMedia.mp3.file
        let items = (0..<4).map { _ in AVPlayerItem(url: url) }
        let player = AVQueuePlayer()
        player.headless = .untimed
        player.insert(items[0], after: nil)
        player.insert(items[1], after: nil)
        player.insert(items[2], after: items[0])
        #expect(player.items() == [items[0], items[2], items[1]])
        #expect(!player.canInsert(items[1], after: nil))
        #expect(!player.canInsert(items[3], after: AVPlayerItem(url: url)))
        player.insert(items[1], after: nil)
        #expect(player.items().count == 3)
        player.remove(items[2])
        player.remove(items[0])
        #expect(player.items() == [items[1]] && player.currentItem === items[1])
        player.removeAllItems()
        #expect(player.items().isEmpty && player.currentItem == nil)
        #expect(player.canInsert(items[0], after: nil))
    }
}
