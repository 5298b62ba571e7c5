import AVFoundation
import Foundation
import Testing

@Suite("Items that can't be played", .timeLimit(.minutes(10)))
@MainActor
struct FailingPlaybackTests {
    @Test("AVError codes have the same values as on Apple platforms")
    func numbers() {
        let numbers: [AVError.Code: Int] = [
            .unknown: -11800, .mediaServicesWereReset: -11819, .fileFormatNotRecognized: -11828,
            .fileFailedToParse: -11829, .contentIsUnavailable: -11863,
        ]
        for (code, number) in numbers { #expect((AVError(code) as NSError).code == number) }
    }

    @Test("A delegate's error before the item is ready becomes the item's error", arguments: [true, false])
    func failsAtOnce(atInformation: Bool) async throws {
        let delegate = FailingDelegate(
            try TestMedia.mp3.bytes, failsAt: atInformation ? nil : 0, error: CocoaError(.fileReadNoPermission))
        let playing = Playing(delegate, queue: delegate.queue)
        await playing.load()
        #expect(playing.item.status == .failed)
        #expect((playing.item.error as? CocoaError)?.code == .fileReadNoPermission)
        #expect(playing.asset.requestLog.last?.errorDescription != nil)
        #expect(playing.asset.contractViolations == [])
    }

    @Test("If an error occurs during playback, the item fails, and a notification is posted")
    func failsInTheMiddle() async throws {
        let delegate = FailingDelegate(
            try TestMedia.mp3.bytes, failsAt: 200_000, error: CocoaError(.fileReadNoPermission))
        let playing = Playing(delegate, queue: delegate.queue)
        await playing.load()
        #expect(playing.item.status == .readyToPlay)
        #expect(await playing.playToEnd() == false)
        #expect(playing.item.status == .failed)
        #expect((playing.item.error as? CocoaError)?.code == .fileReadNoPermission)
    }

    @Test("Without a delegate, an item whose URL has a custom scheme fails")
    func noDelegate() async {
        let playing = Playing(AVURLAsset(url: URL(string: "memory://test/none")!))  // The URL is valid.
        await playing.load()
        #expect((playing.item.error as? URLError)?.code == .unsupportedURL)
    }

    @Test("If the delegate does not accept requests, the item fails")
    func takesNothingOn() async {
        let delegate = IdleDelegate()
        let playing = Playing(delegate, queue: DispatchQueue(label: "idle"))
        await playing.load()
        #expect((playing.item.error as? URLError)?.code == .resourceUnavailable)
    }

    @Test("If the bytes are not media, the item fails with an AVError")
    func noMedia() async {
        let playing = Playing(MemoryDelegate(Data(repeating: 0x20, count: 300_000), contentType: "public.mp3"))
        await playing.load()
        #expect(playing.item.status == .failed)
        #expect(playing.item.error is AVError)
    }

    @Test("An MP4 file with its index at the end can't be played without range support")
    func unreachableIndex() async throws {
        let delegate = MemoryDelegate(
            try TestMedia.mp4MoovAtEnd.bytes, contentType: "public.mpeg-4", seekable: false)
        let playing = Playing(delegate)
        await playing.load()
        #expect(await playing.playToEnd() == false)
        #expect(playing.item.error is AVError)
    }

    @Test("An item for a missing file fails")
    func noFile() async {
        let playing = Playing(AVURLAsset(url: URL(fileURLWithPath: "/nonexistent/media.mp3")))
        await playing.load()
        #expect(playing.item.error is AVError)
    }

    @Test("A failed item stays failed, even in another player")
    func staysFailed() async {
        let playing = Playing(AVURLAsset(url: URL(string: "memory://test/none")!))  // The URL is valid.
        await playing.load()
        let other = AVPlayer()
        other.headless = .untimed
        other.replaceCurrentItem(with: playing.item)
        await playing.item.waitUntilReleased()
        #expect(playing.item.status == .failed && playing.item.openPlaybacks == 0)
        let seeked = await other.seek(to: .zero)
        #expect(!seeked)
    }
}
