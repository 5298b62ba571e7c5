import Foundation
import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Uniform type identifiers")
struct UniformTypeTests {
    private func best(_ contentType: String?, _ ending: String = "") -> String? {
        UniformType.candidates(contentType: contentType, pathExtension: ending).first
    }

    @Test(
        "D42: a media type is converted to a uniform type identifier",
        arguments: [
            ("audio/mpeg", "public.mp3"), ("AUDIO/MPEG; charset=binary", "public.mp3"), ("video/mp4", "public.mpeg-4"),
            ("video/mp4; codecs=\"avc1.42E01E\"", "public.mpeg-4"), ("audio/mp4", "public.mpeg-4-audio"),
            ("audio/x-m4a", "com.apple.m4a-audio"), ("video/quicktime", "com.apple.quicktime-movie"),
            ("audio/x-wav", "com.microsoft.waveform-audio"), ("audio/flac", "org.xiph.flac"),
        ])
    func fromMediaType(contentType: String, identifier: String) {
        #expect(best(contentType) == identifier)
    }

    @Test("For a generic media type, the file name extension determines the type, in any letter case")
    func fromName() {
        for nothing in [nil, "application/octet-stream", "binary/octet-stream", "text/plain", ""] as [String?] {
            #expect(best(nothing, "MP3") == "public.mp3")
            #expect(best(nothing) == nil)
        }
        #expect(best("video/mp4", "mov") == "public.mpeg-4")
        let both = UniformType.candidates(contentType: "video/mp4", pathExtension: "mov")
        #expect(both.contains("com.apple.quicktime-movie"))
    }

    @Test("D42: if the player allows only some types, the type is chosen from these types")
    func allowed() {
        let types = UniformType.candidates(contentType: "audio/mp4", pathExtension: "m4a")
        #expect(UniformType.choose(from: types, allowed: nil) == "public.mpeg-4-audio")
        #expect(UniformType.choose(from: types, allowed: []) == "public.mpeg-4-audio")
        let some = ["public.mp3", "com.apple.m4a-audio"]
        #expect(UniformType.choose(from: types, allowed: some) == "com.apple.m4a-audio")
        #expect(UniformType.choose(from: types, allowed: ["public.mpeg-4"]) == "public.mpeg-4")
        #expect(UniformType.choose(from: types, allowed: ["PUBLIC.MPEG-4-AUDIO"]) == "PUBLIC.MPEG-4-AUDIO")
        #expect(UniformType.choose(from: types, allowed: ["public.mp3"]) == nil)
        #expect(UniformType.choose(from: [], allowed: nil) == "public.data")
    }

    @Test("Playlists are identified by their media type")
    func playlists() {
        #expect(UniformType.isPlaylist(contentType: "application/vnd.apple.mpegurl"))
        #expect(UniformType.isPlaylist(contentType: "Application/X-MpegURL; charset=utf-8"))
        #expect(!UniformType.isPlaylist(contentType: "audio/mpeg") && !UniformType.isPlaylist(contentType: nil))
    }

    @Test("The first bytes of a file identify its type", .timeLimit(.minutes(10)), arguments: SampleMedia.allCases)
    func signatures(media: SampleMedia) async throws {
        let told = UniformType.identifier(ofFileBeginning: try await media.bytes())
        let expected =
            media == .m4a ? "com.apple.m4a-audio" : best(media.mediaType)
        #expect(told == expected)
    }

    @Test("No type is identified for bytes that are not media, regardless of their number")
    func noSignature() {
        for count in 0..<20 {
            #expect(UniformType.identifier(ofFileBeginning: Data(repeating: 0x20, count: count)) == nil)
        }
        #expect(UniformType.identifier(ofFileBeginning: Data([0xFF])) == nil)
        #expect(UniformType.identifier(ofFileBeginning: Data("<html>".utf8)) == nil)
        #expect(UniformType.identifier(ofFileBeginning: Data([0xFF, 0xFB, 0x90])) == "public.mp3")
        #expect(UniformType.identifier(ofFileBeginning: Data([0xFF, 0xF1, 0x50])) == "public.aac-audio")
    }
}
