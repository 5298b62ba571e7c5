import AVFoundation
import Foundation
import Testing

@Suite("Players with difficult request patterns", .timeLimit(.minutes(10)))
@MainActor
struct HostilePatternTests {
    typealias Pattern = AVAssetResourceLoader.PlayerPattern

    @Test(
        "E80: media from a delegate that responds synchronously plays to its end",
        arguments: TestMedia.allCases, Pattern.allCases)
    func synchronous(media: TestMedia, pattern: Pattern) async throws {
        let delegate = try SynchronousDelegate(media)
        let playing = Playing(delegate, queue: delegate.queue, name: media.rawValue, speed: 20) {
            $0.playerPattern = pattern
            $0.setReadAhead(cancelAbove: 48 << 10, requestBelow: 16 << 10)
        }
        await playing.load()
        #expect(await playing.player.seek(to: CMTime(seconds: 6, preferredTimescale: 600)))
        #expect(await playing.player.seek(to: CMTime(seconds: 1, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
        #expect(playing.item.currentTime().seconds > TestMedia.duration - 1)
        #expect(playing.asset.contractViolations == [])
    }

    @Test("E80: the player requests bounded ranges inside the resource, and all bytes from a position to the end")
    func requests() async throws {
        let playing = Playing(try MemoryDelegate(.mp4MoovAtEnd), name: "end.mp4", speed: 20) {
            $0.playerPattern = .hostile
        }
        await playing.load()
        #expect(await playing.player.seek(to: CMTime(seconds: 9, preferredTimescale: 600)))
        #expect(await playing.playToEnd())
        let log = playing.asset.requestLog
        #expect(log.filter { $0.kind == .data && !$0.toEnd && $0.offset > 0 }.count >= 2)
        #expect(log.contains { $0.toEnd })
        #expect(playing.asset.contractViolations == [])
    }

    @Test("With the hostile request pattern, media plays to its end, even after seeks", arguments: TestMedia.allCases)
    func seeks(media: TestMedia) async throws {
        let playing = Playing(try MemoryDelegate(media), name: media.rawValue, speed: 20) {
            $0.playerPattern = .hostile
        }
        await playing.checkSeeks()
    }

    @Test("An item fails with a timeout if one of its requests receives no bytes in time")
    func timesOut() async {
        let delegate = SilentDelegate()
        let playing = Playing(delegate, queue: delegate.queue) {
            $0.playerPattern = .hostile
            $0.requestTimeout = 0.05
        }
        await playing.load()
        #expect((playing.item.error as? URLError)?.code == .timedOut)
    }

    @Test(
        "If a request finishes with too few bytes, the item fails or the missing bytes are requested, as configured",
        arguments: Pattern.allCases, [false, true])
    func shortFinish(pattern: Pattern, asksAgain: Bool) async throws {
        let delegate = try SynchronousDelegate(.mp3, stopsAt: 200_000)
        let playing = Playing(delegate, queue: delegate.queue) {
            $0.playerPattern = pattern
            $0.asksAgainAfterShortFinish = asksAgain
        }
        await playing.load()
        #expect(await playing.playToEnd() == asksAgain)
        #expect((playing.item.error == nil) == asksAgain)
        #expect(playing.asset.contractViolations.allSatisfy { $0.kind == .shortFinish })
    }

    @Test(
        "Media plays if the two probe bytes are delivered, unless the player is configured to stall after the probe",
        arguments: [false, true])
    func probe(chokes: Bool) async throws {
        let delegate = try SynchronousDelegate(.mp3, answersProbe: true)
        let playing = Playing(delegate, queue: delegate.queue) {
            $0.playerPattern = .hostile
            $0.hangsAfterProbe = chokes
        }
        if chokes {
            playing.player.replaceCurrentItem(with: playing.item)
            #expect(playing.item.status == .unknown)
        } else {
            await playing.load()
            #expect(await playing.playToEnd())
        }
    }

    @Test(
        "A redirect that does not report an allowed content type violates the contract", arguments: [nil, "public.mp3"])
    func redirect(type: String?) async throws {
        let delegate = RedirectingDelegate(contentType: type)
        let asset = AVURLAsset(url: URL(string: "memory://test/a")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        asset.resourceLoader.playerPattern = .hostile
        asset.resourceLoader.allowedContentTypes = ["public.mp3"]
        _ = await ResourceLoaderDriver(asset).requestContentInformation().outcome()
        #expect(asset.contractViolations.map(\.kind) == (type == nil ? [.contentTypeNotAllowed] : []))
    }
}

/// A delegate that redirects every request.
final class RedirectingDelegate: NSObject, AVAssetResourceLoaderDelegate {
    let queue = DispatchQueue(label: "RedirectingDelegate")
    private let contentType: String?

    init(contentType: String?) { self.contentType = contentType }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        loadingRequest.redirect = URL(string: "https://origin.test/a").map { URLRequest(url: $0) }
        loadingRequest.contentInformationRequest?.contentType = contentType
        loadingRequest.finishLoading()
        return true
    }
}
