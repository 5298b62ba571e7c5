@_spi(Testing) import AVFoundation
import Foundation
import Testing

@Suite("What an asset says of itself without a player", .timeLimit(.minutes(1)))
struct AssetValuesTests {
    @Test("Its duration, by a loader's bytes or from a file; requests are called off afterwards")
    func duration() async throws {
        let delegate = try MemoryDelegate(.mp4)
        let asset = AVURLAsset(url: URL(string: "memory://test/front.mp4")!)  // a literal that is a URL
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        #expect(asset.statusOfValue(forKey: "duration", error: nil) == .unknown)
        #expect(abs(try await asset.load(.duration).seconds - TestMedia.duration) < 0.5)
        #expect(try await asset.load(.isPlayable))
        #expect(asset.statusOfValue(forKey: "duration", error: nil) == .loaded)
        #expect(asset.statusOfValue(forKey: "tracks", error: nil) == .unknown)
        #expect(asset.contractViolations == [])
        let file = AVURLAsset(url: try TestMedia.mp3.file)
        #expect(abs(try await file.load(.duration).seconds - TestMedia.duration) < 0.5)
    }

    @Test("Asked in the old way, it calls back; what can't be opened says why")
    func failure() async {
        let asset = AVURLAsset(url: URL(fileURLWithPath: "/nonexistent/media.mp3"))
        await withCheckedContinuation { continuation in
            asset.loadValuesAsynchronously(forKeys: ["duration"]) { continuation.resume() }
        }
        var error: NSError?
        #expect(asset.statusOfValue(forKey: "duration", error: &error) == .failed)
        #expect(error?.domain == AVFoundationErrorDomain)
    }
}
