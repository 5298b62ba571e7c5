import AVFoundation
import Foundation
import Testing

@Suite("Images that can't be generated", .timeLimit(.minutes(10)))
struct FailingImageTests {
    private func asset(_ delegate: any AVAssetResourceLoaderDelegate, _ queue: DispatchQueue) -> AVURLAsset {
        let asset = AVURLAsset(url: URL(string: "memory://test/media")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: queue)
        return asset
    }

    private func exactGenerator(_ asset: AVAsset) -> AVAssetImageGenerator {
        let generator = AVAssetImageGenerator(asset: asset)
        generator.requestedTimeToleranceBefore = .zero
        generator.requestedTimeToleranceAfter = .zero
        return generator
    }

    @Test(
        "Images of media without video fail with noSourceTrack, through a delegate or from a file",
        arguments: [true, false])
    func noPictures(asFile: Bool) async throws {
        let delegate = try MemoryDelegate(.mp3)
        let asset = asFile ? AVURLAsset(url: try TestMedia.mp3.file) : asset(delegate, delegate.queue)
        let generator = AVAssetImageGenerator(asset: asset)
        await expect(.noSourceTrack) { try await generator.image(at: .zero) }
        await expect(.noSourceTrack) { try await generator.image(at: .zero) }
        await generator.waitUntilIdle()
    }

    @Test("Images of a missing file, or of bytes that are not media, fail with fileFormatNotRecognized")
    func noMedia() async throws {
        let delegate = MemoryDelegate(Data(repeating: 0x20, count: 300_000), contentType: "public.mpeg-4")
        for asset in [asset(delegate, delegate.queue), AVURLAsset(url: URL(fileURLWithPath: "/nonexistent/film.mp4"))] {
            let generator = AVAssetImageGenerator(asset: asset)
            await expect(.fileFormatNotRecognized) { try await generator.image(at: .zero) }
        }
    }

    @Test("If the video data is noise, an image fails with decodeFailed or noImageAtTime", arguments: [0, 0.55, 11.9])
    func noise(seconds: Double) async throws {
        let generator = exactGenerator(AVURLAsset(url: try TimeMedia.noise.file))
        let time = CMTime(seconds: seconds, preferredTimescale: 600)
        let error = await #expect(throws: AVError.self) { _ = try await generator.image(at: time) }
        #expect(error.map { [.decodeFailed, .noImageAtTime].contains($0.code) } ?? false)
        await generator.waitUntilIdle()
    }

    @Test(
        "Truncated media yields only images of the frames that it contains",
        arguments: [true, false])
    func half(asFile: Bool) async throws {
        let delegate = MemoryDelegate(try TimeMedia.half.bytes, contentType: "public.mpeg-4")
        let asset = asFile ? AVURLAsset(url: try TimeMedia.half.file) : asset(delegate, delegate.queue)
        let generator = exactGenerator(asset)
        for seconds in [1.0, 8, 3.25, 11.9, 2] {
            let time = CMTime(seconds: seconds, preferredTimescale: 600)
            if seconds < 4 {
                #expect(try TimeMedia.number(of: try await generator.image(at: time).image) == Int(seconds * 10))
            } else {
                await expect(.noImageAtTime) { try await generator.image(at: time) }
            }
        }
    }

    @Test("If a delegate's bytes end before the reported length, later images fail with contentIsUnavailable")
    func endsEarly() async throws {
        let bytes = try TimeMedia.mp4.bytes
        let delegate = ShortDelegate(bytes, endsAt: bytes.count / 2)
        let generator = exactGenerator(asset(delegate, delegate.queue))
        #expect(try TimeMedia.number(of: try await generator.image(at: CMTime(value: 1, timescale: 1)).image) == 10)
        await expect(.contentIsUnavailable) { try await generator.image(at: CMTime(value: 9, timescale: 1)) }
    }

    @Test(
        "An image fails with the delegate's error, whether the error occurs at the start or later in the file",
        arguments: [nil, 0, 60_000] as [Int64?])
    func loaderFails(failsAt: Int64?) async throws {
        let delegate = FailingDelegate(
            try TimeMedia.mp4.bytes, failsAt: failsAt, error: CocoaError(.fileReadNoPermission))
        let asset = asset(delegate, delegate.queue)
        let generator = exactGenerator(asset)
        for _ in 0..<2 {
            let error = await #expect(throws: CocoaError.self) {
                _ = try await generator.image(at: CMTime(value: 11, timescale: 1))
            }
            #expect(error?.code == .fileReadNoPermission)
        }
        #expect(asset.contractViolations == [])
    }

    @Test("Without a delegate, images of media with a custom scheme fail with unsupportedURL, as playback does")
    func noDelegate() async {
        // The URL is valid.
        let generator = AVAssetImageGenerator(asset: AVURLAsset(url: URL(string: "memory://test/none")!))
        let error = await #expect(throws: URLError.self) { _ = try await generator.image(at: .zero) }
        #expect(error?.code == .unsupportedURL)
    }

    @Test("Images of media that is not seekable fail with operationNotSupportedForAsset")
    func unseekable() async throws {
        let delegate = MemoryDelegate(try TimeMedia.mp4.bytes, contentType: "public.mpeg-4", seekable: false)
        let generator = AVAssetImageGenerator(asset: asset(delegate, delegate.queue))
        await expect(.operationNotSupportedForAsset) { try await generator.image(at: .zero) }
    }

    @Test("If a delegate never responds, each image fails at its own time limit")
    func silent() async throws {
        let delegate = SilentDelegate()
        let generator = AVAssetImageGenerator(asset: asset(delegate, delegate.queue))
        generator.secondsForAnImage = 1
        for _ in 0..<2 {
            await expect(.failedToLoadMediaData) { try await generator.image(at: .zero) }
        }
        await delegate.cancelled()
        await generator.waitUntilIdle()
    }

    @Test("Cancelling a task cancels its image, both before the image is requested and while bytes are missing")
    func cancelledTask() async throws {
        let delegate = SilentDelegate()
        let generator = AVAssetImageGenerator(asset: asset(delegate, delegate.queue))
        nonisolated(unsafe) let same = generator  // The generator has its own locks.
        let task = Task { try await same.image(at: .zero).image }
        await delegate.asked()
        task.cancel()
        await expect(.operationCancelled) { try await task.value }
        await delegate.cancelled()
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await same.image(at: .zero).image
        }
        await expect(.operationCancelled) { try await early.value }
        await generator.waitUntilIdle()
    }

    @Test("Whenever a task is cancelled, it returns its image or throws operationCancelled")
    func cancelledAnyTime() async throws {
        let generator = exactGenerator(AVURLAsset(url: try TimeMedia.mp4.file))
        nonisolated(unsafe) let same = generator  // The generator has its own locks.
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let image = Task {
                        try await same.image(at: CMTime(value: Int64(number % 120), timescale: 10)).image
                    }
                    for _ in 0..<number % 7 { await Task.yield() }
                    if number % 20 != 0 { image.cancel() }
                    do {
                        #expect(try TimeMedia.number(of: try await image.value) == number % 120)
                    } catch {
                        #expect((error as? AVError)?.code == .operationCancelled)
                    }
                }
            }
        }
        await generator.waitUntilIdle()
    }

    @Test("Cancelling the request for one image does not delay other images")
    func othersGoOn() async throws {
        let delegate = MemoryDelegate(try TimeMedia.mp4.bytes, contentType: "public.mpeg-4")
        let length = Int64(try TimeMedia.mp4.bytes.count)
        delegate.holdBack(length / 2..<length)
        let generator = exactGenerator(asset(delegate, delegate.queue))
        nonisolated(unsafe) let same = generator  // The generator has its own locks.
        let held = Task { try await same.image(at: CMTime(value: 11, timescale: 1)).image }
        await delegate.reachedHeldBack()
        let other = Task { try await same.image(at: CMTime(value: 1, timescale: 1)).image }
        held.cancel()
        await expect(.operationCancelled) { try await held.value }
        #expect(try TimeMedia.number(of: try await other.value) == 10)
    }

    @Test(
        "Cancelling all requests reports each image as cancelled and ends all sequences; later requests return images")
    func cancelAll() async throws {
        let delegate = MemoryDelegate(try TimeMedia.mp4.bytes, contentType: "public.mpeg-4")
        delegate.holdBack(0..<Int64.max)
        let generator = exactGenerator(asset(delegate, delegate.queue))
        let (heard, continuation) = AsyncStream<AVAssetImageGenerator.Result>.makeStream()
        let times = (0..<5).map { CMTime(value: $0, timescale: 1) }
        generator.generateCGImagesAsynchronously(forTimes: times.map { NSValue(time: $0) }) {
            _, image, _, result, error in
            #expect(image == nil && (error as? AVError)?.code == .operationCancelled)
            continuation.yield(result)
        }
        var iterator = heard.makeAsyncIterator()
        await delegate.reachedHeldBack()
        generator.cancelAllCGImageGeneration()
        for _ in times { #expect(await iterator.next() == .cancelled) }

        let images = generator.images(for: times)
        let taken = Task {
            var codes: [AVError.Code?] = []
            for await element in images {
                if case .failure(_, let error) = element { codes.append((error as? AVError)?.code) }
            }
            return codes
        }
        await delegate.reachedHeldBack()
        generator.cancelAllCGImageGeneration()
        #expect(await taken.value == Array(repeating: .operationCancelled, count: 5))

        delegate.holdBack(nil)
        #expect(try TimeMedia.number(of: try await generator.image(at: times[3]).image) == 30)
    }

    @Test("Releasing a sequence of images before its end cancels the unfinished images")
    func sequenceGoes() async throws {
        let delegate = MemoryDelegate(try TimeMedia.mp4.bytes, contentType: "public.mpeg-4")
        let generator = exactGenerator(asset(delegate, delegate.queue))
        for await element in generator.images(for: (0..<12).map { CMTime(value: $0, timescale: 1) }) {
            #expect(try TimeMedia.number(of: element.image) == 0)
            delegate.holdBack(0..<Int64.max)
            break
        }
        await generator.waitUntilIdle()
    }

    @Test("If a generator is released, its asset is retained until the pending image has been generated")
    func generatorGoes() async throws {
        let delegate = MemoryDelegate(try TimeMedia.mp4.bytes, contentType: "public.mpeg-4")
        let image = await withCheckedContinuation { continuation in
            let generator = exactGenerator(asset(delegate, delegate.queue))
            generator.generateCGImageAsynchronously(for: CMTime(value: 7, timescale: 1)) { image, _, _ in
                continuation.resume(returning: image)
            }
        }
        #expect(try TimeMedia.number(of: try #require(image)) == 70)
    }

    @Test("With the hostile request pattern, images show the requested frames")
    func hostile() async throws {
        for seed in 0..<4 {
            let bytes = try TimeMedia.mp4.bytes
            let delegate = MemoryDelegate(bytes, contentType: "public.mpeg-4", pieceLength: 1 << (10 + seed * 2))
            let asset = asset(delegate, delegate.queue)
            asset.resourceLoader.playerPattern = .hostile
            let generator = exactGenerator(asset)
            for seconds in [9.3, 0.1, 11.9, 5.55] {
                let time = CMTime(seconds: seconds, preferredTimescale: 600)
                #expect(try TimeMedia.number(of: try await generator.image(at: time).image) == Int(seconds * 10 + 0.01))
            }
            #expect(asset.contractViolations == [])
        }
    }
}

/// A delegate that reports the full length, but delivers bytes only up to `endsAt`.
final class ShortDelegate: NSObject, AVAssetResourceLoaderDelegate {
    let queue = DispatchQueue(label: "ShortDelegate")
    private let bytes: Data
    private let endsAt: Int

    init(_ bytes: Data, endsAt: Int) {
        self.bytes = bytes
        self.endsAt = endsAt
    }

    func resourceLoader(
        _ resourceLoader: AVAssetResourceLoader,
        shouldWaitForLoadingOfRequestedResource loadingRequest: AVAssetResourceLoadingRequest
    ) -> Bool {
        if let information = loadingRequest.contentInformationRequest {
            information.contentType = "public.mpeg-4"
            information.contentLength = Int64(bytes.count)
            information.isByteRangeAccessSupported = true
        } else if let data = loadingRequest.dataRequest, data.requestedOffset < Int64(endsAt) {
            data.respond(with: bytes.subdata(in: Int(data.requestedOffset)..<endsAt))
        }
        loadingRequest.finishLoading()
        return true
    }
}
