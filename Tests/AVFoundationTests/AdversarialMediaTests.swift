import AVFoundation
import Foundation
import Glibc
import Testing

@Suite("Playlists instead of media", .timeLimit(.minutes(10)), .serialized)
@MainActor
struct AdversarialMediaTests {
    /// The formats of playlists that libmpv or libavformat can read. Each playlist contains the path of a file and a
    /// URL.
    nonisolated private static let kinds = [
        "m3u", "paths", "pls", "edl", "ffconcat", "hls", "cue", "dash", "sdp", "asx", "reference",
    ]

    private func text(_ kind: String, file: String, url: String) -> String {
        switch kind {
        case "m3u": "#EXTM3U\n#EXTINF:2,a\n\(file)\n\(url)\n"
        case "paths": "\(file)\n\(url)\n"
        case "pls": "[playlist]\nFile1=\(file)\nFile2=\(url)\nNumberOfEntries=2\n"
        case "edl": "# mpv EDL v0\n\(file),0,2\n\(url),0,2\n"
        case "ffconcat": "ffconcat version 1.0\nfile '\(file)'\nfile '\(url)'\n"
        case "hls":
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile://\(file)\n#EXTINF:2,\n\(url)\n"
                + "#EXT-X-ENDLIST\n"
        case "cue": "FILE \"\(file)\" MP3\n  TRACK 01 AUDIO\n    INDEX 01 00:00:00\n"
        case "dash":
            "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" "
                + "mediaPresentationDuration=\"PT2S\"><Period><AdaptationSet mimeType=\"audio/mp4\">"
                + "<Representation id=\"1\" bandwidth=\"1\"><BaseURL>\(url)</BaseURL></Representation>"
                + "</AdaptationSet></Period></MPD>"
        case "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n"
        case "asx": "<asx version=\"3.0\"><entry><ref href=\"\(url)\"/></entry></asx>"
        default: "[Reference]\nRef1=\(url)\n"
        }
    }

    @Test(
        "E75: a playlist that is served or stored as media is rejected, and its files and URLs are not opened",
        arguments: kinds,
        [false, true])
    func refused(kind: String, asFile: Bool) async throws {
        let canary = try Canary()
        let bytes = Data(text(kind, file: canary.file.path, url: canary.url).utf8)
        for name in ["media", "film.mp4", "list.\(kind == "hls" ? "m3u8" : kind)"] {
            let playing: Playing
            if asFile {
                let file = canary.folder.appendingPathComponent(name)
                try bytes.write(to: file)
                playing = Playing(AVURLAsset(url: file))
            } else {
                playing = Playing(MemoryDelegate(bytes, contentType: "public.mpeg-4"), name: name)
            }
            await playing.load()
            #expect(playing.item.status == .failed && playing.item.error is AVError)
            playing.player.replaceCurrentItem(with: nil)
            await playing.item.waitUntilReleased()
        }
        #expect(!canary.wasOpened && !canary.wasConnected)
        // Checks that the canary detects when its file is opened.
        _ = try Data(contentsOf: canary.file)
        #expect(canary.wasOpened)
    }
}

/// A file and a URL that record whether the file was opened and whether a client connected to the URL.
private final class Canary {
    let folder: URL
    let file: URL
    private let watch: Int32
    private let socket: Int32
    private let port: UInt16

    struct Failed: Error {}

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("canary-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        file = folder.appendingPathComponent("canary.mp3")
        try TestMedia.mp3.bytes.write(to: file)
        watch = inotify_init1(O_NONBLOCK)
        guard watch >= 0, inotify_add_watch(watch, file.path, UInt32(IN_OPEN)) >= 0 else { throw Failed() }
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, length) == 0 && getsockname(socket, address, &length) == 0
            }
        }
        guard isBound, listen(socket, 8) == 0 else { throw Failed() }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        close(watch)
        close(socket)
        // A leftover temporary directory is harmless.
        try? FileManager.default.removeItem(at: folder)
    }

    var url: String { "http://127.0.0.1:\(port)/canary.mp3" }

    /// Whether the file has been opened since the last use of this property.
    var wasOpened: Bool {
        var events = [UInt8](repeating: 0, count: 4096)
        return read(watch, &events, events.count) > 0
    }

    /// Whether a client has connected. Such a client waits, because it does not receive a response.
    var wasConnected: Bool {
        let connection = accept(socket, nil, nil)
        if connection >= 0 { close(connection) }
        return connection >= 0
    }
}
