import Foundation
import Testing

@testable import AVFoundation

@Suite("Stream readers", .timeLimit(.minutes(10)))
struct StreamReaderTests {
    private func stream(_ asset: AVURLAsset) -> MediaStream {
        MediaStream(core: asset.resourceLoader.core, url: asset.url)
    }

    private let asset = AVURLAsset(url: URL(string: "memory://test/media")!)  // The URL is valid.

    @Test("Playback that is closed before libmpv opens its stream does not wait for the stream")
    func closedBefore() {
        let delegate = SilentDelegate()
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let reader = StreamReader(stream(asset))
        reader.close(cancelling: true)
        #expect(!reader.open())
        #expect(asset.requestLog.isEmpty)
    }

    @Test(
        "Once an item's next playback has opened the stream, the previous playback can no longer read from the stream")
    func previous() throws {
        let bytes = try TestMedia.mp3.bytes
        let delegate = MemoryDelegate(bytes, contentType: "public.mp3")
        asset.resourceLoader.setDelegate(delegate, queue: delegate.queue)
        let stream = stream(asset)
        let (previous, next) = (StreamReader(stream), StreamReader(stream))
        var buffer = [UInt8](repeating: 0, count: 100)
        func read(_ reader: StreamReader) -> [UInt8]? {
            let count = buffer.withUnsafeMutableBytes { reader.read(into: $0) }
            return count.map { Array(buffer.prefix($0)) }
        }
        #expect(previous.open() && read(previous)?.first == bytes.first)
        previous.close(cancelling: false)
        #expect(next.open())
        #expect(read(previous) == nil && !previous.open())
        previous.seek(to: 1000)
        previous.close(cancelling: true)
        #expect(read(next)?.elementsEqual(bytes.prefix(100)) == true)
        next.close(cancelling: true)
        #expect(asset.contractViolations == [])
    }
}
