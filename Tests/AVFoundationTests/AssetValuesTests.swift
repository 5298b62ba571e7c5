import AVFoundation
import Foundation
import Testing

/// An asset that fires a signal when it is deallocated.
///
/// The conformance is `@unchecked` like that of the superclass, because this class adds only a constant.
private final class NotedAsset: AVURLAsset, @unchecked Sendable {
    private let gone: Signal

    init(url: URL, gone: Signal) {
        self.gone = gone
        super.init(url: url)
    }

    deinit { gone.fire() }
}

@Suite("Asset values without a player", .timeLimit(.minutes(10)))
struct AssetValuesTests {
    @Test("An asset's duration can be loaded through a delegate or from a file")
    func duration() async throws {
        let delegate = try MemoryDelegate(.mp4)
        let asset = AVURLAsset(url: URL(string: "memory://test/front.mp4")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        #expect(asset.statusOfValue(forKey: "duration", error: nil) == .unknown)
        #expect(abs(try await asset.load(.duration).seconds - TestMedia.duration) < 0.5)
        #expect(try await asset.load(.isPlayable))
        #expect(asset.statusOfValue(forKey: "duration", error: nil) == .loaded)
        #expect(asset.statusOfValue(forKey: "metadata", error: nil) == .unknown)
        #expect(asset.contractViolations == [])
        let file = AVURLAsset(url: try TestMedia.mp3.file)
        #expect(abs(try await file.load(.duration).seconds - TestMedia.duration) < 0.5)
    }

    typealias Pattern = AVAssetResourceLoader.PlayerPattern

    @Test(
        "Tracks can be loaded through a delegate with each request pattern, and from a file",
        arguments: Pattern.allCases)
    func tracks(pattern: Pattern) async throws {
        let asset = AVURLAsset(url: URL(string: "memory://test/end.mp4")!)  // The URL is valid.
        let delegate = try MemoryDelegate(.mp4MoovAtEnd)
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        asset.resourceLoader.playerPattern = pattern
        let (tracks, duration) = try await asset.load(.tracks, .duration)
        #expect(tracks.map(\.mediaType) == [.video, .audio])
        #expect(abs(duration.seconds - TestMedia.duration) < 0.5)
        #expect(tracks.allSatisfy { $0.asset === asset && $0.trackID != 0 })
        let video = try #require(tracks.first)
        #expect(try await video.load(.naturalSize) == CGSize(width: 160, height: 120))
        #expect(try await video.load(.nominalFrameRate) == 10)
        #expect(try await video.load(.estimatedDataRate) > 1000)
        let audio = try #require(try await asset.loadTracks(withMediaType: .audio).first)
        #expect(try await audio.load(.naturalSize) == .zero)
        #expect(try await (64_000...160_000).contains(audio.load(.estimatedDataRate)))
        #expect(try await audio.load(.isEnabled))
        #expect(try await asset.loadTrack(withTrackID: audio.trackID) === audio)
        #expect(try await asset.loadTrack(withTrackID: 99) == nil)
        #expect(asset.statusOfValue(forKey: "tracks", error: nil) == .loaded)
        #expect(asset.contractViolations == [])

        // The variable has the type `AVAsset`, as an item's `asset` property does.
        let song: AVAsset = AVURLAsset(url: try TestMedia.mp3.file)
        let sound = try await song.load(.tracks)
        #expect(sound.map(\.mediaType) == [.audio])
        #expect(try await sound[0].load(.languageCode) == nil)
        #expect(try await song.loadTracks(withMediaType: .video) == [])
    }

    @Test("Tracks do not retain their asset, and loading tracks from a missing file throws an error")
    func noTracks() async throws {
        let file = try TestMedia.mp3.file
        let hasGone = Signal()
        func load() async throws -> [AVAssetTrack] {
            let tracks = try await NotedAsset(url: file, gone: hasGone).load(.tracks)
            return tracks
        }
        let tracks = try await load()
        await hasGone.wait()
        #expect(tracks.count == 1 && tracks.first?.asset == nil)
        let missing = AVURLAsset(url: URL(fileURLWithPath: "/nonexistent/media.mp3"))
        await #expect(throws: (any Error).self) { try await missing.load(.tracks) }
    }

    @Test("For a missing file, loadValuesAsynchronously calls its handler, and the value's status is failed")
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
