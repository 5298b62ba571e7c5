import AVFoundation
import Foundation
import Synchronization
import Testing

private func time(_ seconds: Double) -> CMTime { CMTime(seconds: seconds, preferredTimescale: 600) }

@Suite("Images of a video", .timeLimit(.minutes(10)))
struct ImageGeneratorTests {
    private func generator(_ media: TimeMedia, exact: Bool = true) throws -> AVAssetImageGenerator {
        let generator = AVAssetImageGenerator(asset: AVURLAsset(url: try media.file))
        if exact {
            generator.requestedTimeToleranceBefore = .zero
            generator.requestedTimeToleranceAfter = .zero
        }
        return generator
    }

    @Test(
        "Without tolerance, the image is the frame that is displayed at the requested time",
        arguments: [TimeMedia.mp4, .mkv, .ts])
    func exact(media: TimeMedia) async throws {
        let generator = try generator(media)
        // The time of the first frame depends on the container.
        let start = try await generator.image(at: .zero).actualTime.seconds
        #expect(start < 0.1)
        for (seconds, number) in [(0.0, 0), (1, 10), (1.25, 12), (5.55, 55), (3.3, 33), (11.9, 119), (11.95, 119)] {
            let (image, actualTime) = try await generator.image(at: time(seconds + start))
            #expect(try TimeMedia.number(of: image) == number)
            #expect(abs(actualTime.seconds - start - Double(number) / 10) < 0.002)
            #expect(image.width == 160 && image.height == 120)
        }
        await generator.waitUntilIdle()
    }

    @Test("If frames are displayed for several seconds, the image is the frame that is displayed at the requested time")
    func slides() async throws {
        let generator = try generator(.slides)
        for (seconds, number) in [(0.5, 0), (1, 10), (4.9, 10), (9.9, 50), (10, 100)] {
            let (image, actualTime) = try await generator.image(at: time(seconds))
            #expect(try TimeMedia.number(of: image) == number)
            #expect(abs(actualTime.seconds - Double(number) / 10) < 0.002)
        }
    }

    @Test(
        "The image is a key frame if one is within the tolerance, or otherwise the closest frame within the tolerance")
    func tolerance() async throws {
        let generator = try generator(.mp4, exact: false)
        for seconds in [5.0, 5.55, 5.9] {
            #expect(try TimeMedia.number(of: try await generator.image(at: time(seconds)).image) == 50)
        }
        generator.requestedTimeToleranceBefore = time(0.6)
        generator.requestedTimeToleranceAfter = .zero
        #expect(try TimeMedia.number(of: try await generator.image(at: time(5.55)).image) == 50)
        #expect(try TimeMedia.number(of: try await generator.image(at: time(5.75)).image) == 57)
        generator.requestedTimeToleranceBefore = .zero
        generator.requestedTimeToleranceAfter = time(0.1)
        #expect(try TimeMedia.number(of: try await generator.image(at: time(5.75)).image) == 58)
    }

    @Test("For a time past the end or an invalid time, an image is returned only if a frame is within the tolerance")
    func pastTheEnd() async throws {
        let generator = try generator(.mp4)
        for time in [
            time(12), time(12.5), time(1e6), CMTime(value: .max, timescale: 1), time(-1), .invalid, .indefinite,
        ] {
            await expect(.noImageAtTime) { try await generator.image(at: time) }
        }
        generator.requestedTimeToleranceBefore = time(2)
        #expect(try TimeMedia.number(of: try await generator.image(at: time(13)).image) >= 110)
        await expect(.noImageAtTime) { try await generator.image(at: time(15)) }
        generator.requestedTimeToleranceBefore = .positiveInfinity
        #expect(try TimeMedia.number(of: try await generator.image(at: time(1e6)).image) >= 110)
        generator.requestedTimeToleranceAfter = .positiveInfinity
        #expect(try TimeMedia.number(of: try await generator.image(at: time(-1)).image) == 0)
        let single = try self.generator(.single)
        #expect(try TimeMedia.number(of: try await single.image(at: time(0.05)).image) == 0)
    }

    @Test("Images have the display size, or are scaled down to the maximum size with the same aspect ratio")
    func size() async throws {
        let generator = try generator(.mp4)
        for (box, width, height) in [
            (CGSize(width: 80, height: 80), 80, 60), (CGSize(width: 0, height: 30), 40, 30),
            (CGSize(width: 1000, height: 1000), 160, 120), (CGSize(width: 33, height: 0), 33, 25),
            (CGSize(width: 0.5, height: -3), 160, 120), (CGSize(width: 1, height: 1), 1, 1),
            (CGSize(width: Double.nan, height: Double.infinity), 160, 120),
        ] {
            generator.maximumSize = box
            let image = try await generator.image(at: time(5)).image
            #expect(image.width == width && image.height == height, "\(box)")
            #expect(try TimeMedia.number(of: image) == 50)
            #expect(image.bitsPerPixel == 32 && image.bytesPerRow >= 4 * width)
            #expect(try #require(image.dataProvider?.data).count >= image.bytesPerRow * height)
        }
        let turned = try self.generator(.turned)
        #expect(try await turned.image(at: time(1)).image.height == 120)
        turned.appliesPreferredTrackTransform = true
        #expect(try await turned.image(at: time(1)).image.height == 160)
        #expect(try await self.generator(.wide).image(at: time(1)).image.width == 320)
    }

    @Test("A scaled image averages the pixels of the original")
    func averages() async throws {
        let generator = AVAssetImageGenerator(asset: AVURLAsset(url: try TestMedia.mp4.file))
        let whole = try await generator.image(at: .zero).image
        generator.maximumSize = CGSize(width: 1, height: 1)
        let pixel = try #require(try await generator.image(at: .zero).image.dataProvider?.data)
        let data = try #require(whole.dataProvider?.data)
        for color in 0..<3 {
            let sum = (0..<whole.height).reduce(0) { sum, row in
                sum + (0..<whole.width).reduce(0) { $0 + Int(data[row * whole.bytesPerRow + $1 * 4 + color]) }
            }
            #expect(Int(pixel[color]) == sum / (whole.width * whole.height))
        }
    }

    @Test("Images can be requested with a handler, as a sequence, and with a blocking call")
    func manners() async throws {
        let generator = try generator(.mp4)
        let numbers = [110, 3, 57, 0]
        let times = numbers.map { time(Double($0) / 10) } + [time(20)]
        let heard = await withCheckedContinuation { continuation in
            let heard = Mutex<[(Int, Int?, AVAssetImageGenerator.Result)]>([])
            generator.generateCGImagesAsynchronously(forTimes: times.map { NSValue(time: $0) }) {
                asked, image, actual, result, error in
                let number = image.flatMap { try? TimeMedia.number(of: $0) }
                #expect((error as? AVError)?.code == (image == nil ? .noImageAtTime : nil))
                #expect(actual.isValid == (image != nil))
                let all = heard.withLock { heard in
                    heard.append((Int((asked.seconds * 10).rounded()), number, result))
                    return heard
                }
                if all.count == times.count { continuation.resume(returning: all) }
            }
        }
        #expect(heard.map(\.0) == numbers + [200] && heard.map(\.1) == numbers + [nil])
        #expect(heard.map(\.2) == [.succeeded, .succeeded, .succeeded, .succeeded, .failed])

        var taken: [Int?] = []
        for await element in generator.images(for: times) {
            taken.append(try? TimeMedia.number(of: element.image))
            if let actual = try? element.actualTime { #expect(abs((actual - element.requestedTime).seconds) < 0.002) }
        }
        #expect(taken == numbers + [nil])

        let one = await withCheckedContinuation { continuation in
            generator.generateCGImageAsynchronously(for: time(4.2)) { image, actual, error in
                #expect(abs(actual.seconds - 4.2) < 0.002 && error == nil)
                continuation.resume(returning: image)
            }
        }
        #expect(try TimeMedia.number(of: try #require(one)) == 42)
        var actual = CMTime.invalid
        #expect(try TimeMedia.number(of: try generator.blockingImage(at: time(4.25), actualTime: &actual)) == 42)
        #expect(abs(actual.seconds - 4.2) < 0.002)
        #expect(throws: AVError(.noImageAtTime)) { try generator.blockingImage(at: time(13), actualTime: nil) }
    }

    @Test("Threads that wait for an image do not block each other")
    func blocking() async throws {
        let file = try TimeMedia.mp4.file
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let generator = AVAssetImageGenerator(asset: AVURLAsset(url: file))
                    return try TimeMedia.number(of: generator.blockingImage(at: time(5), actualTime: nil))
                }
            }
            for try await number in group { #expect(number == 50) }
        }
    }

    @Test("A handler may request another image and wait for it")
    func nested() async throws {
        let generator = try generator(.mp4)
        let number = await withCheckedContinuation { continuation in
            nonisolated(unsafe) let same = generator  // Only one thread at a time uses the generator.
            generator.generateCGImageAsynchronously(for: time(1)) { _, _, _ in
                let image = try? same.blockingImage(at: time(2), actualTime: nil)
                continuation.resume(returning: image.flatMap { try? TimeMedia.number(of: $0) })
            }
        }
        #expect(number == 20)
    }

    @Test("After a hundred images, through a delegate and from a file, no request or file descriptor remains open")
    func leavesNothing() async throws {
        let delegate = MemoryDelegate(try TimeMedia.mp4.bytes, contentType: "public.mpeg-4")
        let asset = AVURLAsset(url: URL(string: "memory://test/time.mp4")!)  // The URL is valid.
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).mp4")
        try FileManager.default.copyItem(at: try TimeMedia.mp4.file, to: file)
        defer { try? FileManager.default.removeItem(at: file) }  // If this fails, the file remains.
        for asset in [asset, AVURLAsset(url: file)] {
            let generator = AVAssetImageGenerator(asset: asset)
            generator.requestedTimeToleranceBefore = .zero
            generator.requestedTimeToleranceAfter = .zero
            for number in 0..<50 {
                let image = try await generator.image(at: time(Double(number * 2) / 10)).image
                #expect(try TimeMedia.number(of: image) == number * 2)
            }
            await generator.waitUntilIdle()
        }
        #expect(asset.contractViolations == [])
        #expect(asset.requestLog.allSatisfy { $0.isFinished || $0.isCancelled })
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let open = descriptors.map { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
        #expect(!open.contains(file.path))
    }
}

/// Expects that `body` throws an `AVError` with this code.
func expect(
    _ code: AVError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Any
) async {
    let error = await #expect(throws: AVError.self, sourceLocation: sourceLocation) { _ = try await body() }
    #expect(error?.code == code, sourceLocation: sourceLocation)
}
