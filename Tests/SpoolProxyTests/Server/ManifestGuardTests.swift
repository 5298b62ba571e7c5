import NIOCore
import Testing

@testable import SpoolProxy

@Suite("Bodies that may be manifests") struct ManifestGuardTests {
    /// Returns the bytes that may be sent after each piece of a body.
    private func sent(_ pieces: [String]) throws -> [String] {
        var manifestGuard = ManifestGuard(isActive: true)
        return try pieces.enumerated().map { index, piece in
            guard manifestGuard.isActive else { return piece }
            var bytes = Array(piece.utf8)
            return try bytes.withUnsafeMutableBytes {
                try String(
                    buffer: manifestGuard.examine(
                        UnsafeRawBufferPointer($0), isLast: index == pieces.count - 1))
            }
        }
    }

    @Test(
        "E503: a short body that starts like a manifest is sent unless it is one",
        arguments: ["#", "<", " \n", "\u{FEFF}", "#EXT", "<?xml version=\"1.0\"?>", "<!-- MPD"])
    func short(body: String) throws {
        #expect(try sent([body]) == [body])
        // If the end is not known yet, the bytes are held back until it is.
        var manifestGuard = ManifestGuard(isActive: true)
        var bytes = Array(body.utf8)
        let held = try bytes.withUnsafeMutableBytes {
            try manifestGuard.examine(UnsafeRawBufferPointer($0), isLast: false)
        }
        #expect(held.readableBytes == 0)
        #expect(try String(buffer: manifestGuard.end()) == body)
    }

    @Test("E503: bytes are held back until they can't be the start of a manifest")
    func pieces() throws {
        #expect(try sent(["#", "EX", "TINF and more", "rest"]) == ["", "", "#EXTINF and more", "rest"])
        #expect(try sent(["media", "#EXTM3U\n#EXT-X-VERSION:3"]) == ["media", "#EXTM3U\n#EXT-X-VERSION:3"])
    }

    @Test(
        "E500: a body that is or may be a manifest is not sent, however it is split into pieces",
        arguments: [
            ["#EXTM3U\n#EXT-X-VERSION:3\n"], ["#", "EXTM3U\n", "#EXT-X-VERSION:3\n"],
            ["<?xml version=\"1.0\"?>", "<MPD>"],
            ["<!--", String(repeating: "-", count: 5000)],
        ])
    func manifests(pieces: [String]) {
        #expect(throws: ManifestGuard.UnexpectedManifest.self) { try sent(pieces) }
    }
}
