#if os(Linux)
import AVFoundation
import Foundation
import Spool
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Container detection", .timeLimit(.minutes(10)))
struct ContainerTests {
    private static func head(_ bytes: [UInt8], _ text: String = "", at offset: Int = 0) -> Data {
        var data = Data(bytes)
        if !text.isEmpty {
            data += Data(count: max(0, offset - data.count))
            data += Data(text.utf8)
        }
        return data + Data(count: max(0, 64 - data.count))
    }

    private static let packet: [UInt8] = [0x47, 0x40, 0x00, 0x10] + [UInt8](repeating: 0xFF, count: 184)

    @Test(
        "E79: the first bytes identify the container",
        arguments: [
            (head([0, 0, 0, 28], "ftypM4A ", at: 4), "com.apple.m4a-audio"),
            (head([0, 0, 0, 28], "ftypisom", at: 4), "public.mpeg-4"),
            (head([0, 0, 0, 28], "ftypM4V ", at: 4), "com.apple.m4v-video"),
            (head([0, 0, 0, 28], "ftyp3gp5", at: 4), "public.3gpp"),
            (head([0, 0, 0, 20], "ftypqt  ", at: 4), "com.apple.quicktime-movie"),
            (head([], "ID3\u{4}"), "public.mp3"), (head([0xFF, 0xFB, 0x90]), "public.mp3"),
            (head([0xFF, 0xF1, 0x50]), "public.aac-audio"), (head([], "fLaC"), "org.xiph.flac"),
            (head([], "RIFF....WAVEfmt "), "com.microsoft.waveform-audio"),
            (head([], "RIFF....AVI LIST"), "public.avi"),
            (head([], "OggS"), "org.xiph.ogg-audio"), (head([], "FORM....AIFFCOMM"), "public.aiff-audio"),
            (head([], "caff"), "com.apple.coreaudio-format"),
            (head([0x1A, 0x45, 0xDF, 0xA3], "webm", at: 24), "org.webmproject.webm"),
            (head([0x1A, 0x45, 0xDF, 0xA3], "matroska", at: 24), "org.matroska.mkv"),
            (head([0, 0, 1, 0xBA]), "public.mpeg"),
            (Data(packet.prefix(64)), "public.mpeg-2-transport-stream"),
            (Data(packet + packet + packet.prefix(4)), "public.mpeg-2-transport-stream"),
        ])
    func signature(head: Data, type: String) {
        #expect(UniformType.identifier(ofFileBeginning: head) == type)
    }

    @Test(
        "E79: the bytes of real media identify its type",
        arguments: [
            (.mp3, "public.mp3"), (.m4a, "com.apple.m4a-audio"), (.mp4, "public.mpeg-4"),
            (.mp4MoovAtEnd, "public.mpeg-4"), (.webm, "org.webmproject.webm"), (.ogg, "org.xiph.ogg-audio"),
            (.wav, "com.microsoft.waveform-audio"), (.ts, "public.mpeg-2-transport-stream"), (.mpg, "public.mpeg"),
        ] as [(SampleMedia, String)])
    func real(media: SampleMedia, type: String) async throws {
        #expect(UniformType.identifier(ofFileBeginning: try await media.bytes()) == type)
        #expect(
            UniformType.candidates(contentType: media.mediaType, pathExtension: "").contains { $0 == type }
                || media == .m4a)
    }

    @Test("Text that starts with G is not identified as a transport stream")
    func noTransportStream() {
        #expect(UniformType.identifier(ofFileBeginning: Data("Gibt es hier etwas?".utf8) + Data(count: 400)) == nil)
    }

    @Test("E79: the detected container overrides the declared type, unless that type belongs to the same container")
    func order() {
        #expect(
            UniformType.ordered(declared: ["public.mp3"], found: "com.apple.m4a-audio").first == "com.apple.m4a-audio")
        #expect(UniformType.ordered(declared: ["public.mpeg-4"], found: "public.mp3").first == "public.mp3")
        let near = UniformType.ordered(declared: ["public.mpeg-4-audio"], found: "public.mpeg-4")
        #expect(near == ["public.mpeg-4-audio", "public.mpeg-4"])
        #expect(UniformType.ordered(declared: ["public.mp3"], found: nil) == ["public.mp3"])
        #expect(UniformType.ordered(declared: [], found: "public.mp3") == ["public.mp3"])
    }

    @Test(
        "E79: the detected type is reported to the player, unless the app overrides the type",
        arguments: [
            ("audio/mpeg", nil, "com.apple.m4a-audio"), ("application/octet-stream", nil, "com.apple.m4a-audio"),
            ("video/mp4", nil, "public.mpeg-4"), (nil, nil, "com.apple.m4a-audio"),
            ("audio/mpeg", "audio/wav", "com.microsoft.waveform-audio"),
        ] as [(String?, String?, String)])
    func told(declared: String?, override: String?, type: String) async throws {
        let folder = try ScratchFolder()
        let file = MemoryUpstream.File(try await SampleMedia.m4a.bytes(), contentType: declared)
        let cache = try await folder.cache(MemoryUpstream(["/a": file]), cancellingImmediately)
        let options = override.map { [AVURLAssetOverrideMIMETypeKey: $0] }
        let asset = CachingURLAsset(caching: address("a"), in: cache, options: options)
        guard case .finished(type, _, true)? = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        else {
            Issue.record("not finished, or another type")
            return
        }
        #expect(asset.contractViolations == [])
        await cache.close()
    }

    @Test("E80: the content type of a redirect is one that the player allows")
    func redirect() async throws {
        let folder = try ScratchFolder()
        let upstream = MemoryUpstream(["/stream": .pattern(400_000, contentType: "application/vnd.apple.mpegurl")])
        let cache = try await folder.cache(upstream, cancellingImmediately)
        let asset = CachingURLAsset(caching: address("stream"), in: cache)
        asset.resourceLoader.playerPattern = .hostile
        asset.resourceLoader.allowedContentTypes = ["public.mp3"]
        _ = await ResourceLoaderDriver(asset).requestContentInformation().ending()
        #expect(asset.contractViolations == [])
        await cache.close()
    }
}
#endif
