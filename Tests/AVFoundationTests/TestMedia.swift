import Foundation

/// Real media that ffmpeg creates in the temporary directory.
enum TestMedia: String, CaseIterable {
    case mp3 = "sine.mp3"
    case mp4 = "front.mp4"
    case mp4MoovAtEnd = "end.mp4"

    /// The duration of each file, in seconds.
    static let duration = 12.0

    var bytes: Data {
        get throws { try Data(contentsOf: file) }
    }

    var file: URL {
        get throws { try Self.folder.get().appendingPathComponent(rawValue) }
    }

    var contentType: String {
        self == .mp3 ? "public.mp3" : "public.mpeg-4"
    }

    private static let folder = folder("avfoundation-test-media-2") { folder in
        let sound = ["-f", "lavfi", "-i", "sine=frequency=440:duration=\(duration)"]
        let picture = ["-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=\(duration)"]
        let codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "10", "-c:a", "aac", "-b:a", "128k"]
        let video = picture + sound + codecs
        try make(sound + ["-c:a", "libmp3lame", "-b:a", "320k"], in: folder, TestMedia.mp3.rawValue)
        try make(video + ["-movflags", "+faststart"], in: folder, TestMedia.mp4.rawValue)
        try make(video, in: folder, TestMedia.mp4MoovAtEnd.rawValue)
    }

    /// Returns a directory of media, which is created once and reused by later runs.
    ///
    /// The directory is created under a temporary name, and renamed when it is complete. If you change its contents,
    /// change its name.
    static func folder(_ name: String, _ fill: (URL) throws -> Void) -> Result<URL, any Error> {
        Result {
            let files = FileManager.default
            let place = files.temporaryDirectory.appendingPathComponent(name)
            if files.fileExists(atPath: place.path) { return place }
            let folder = files.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            try fill(folder)
            do {
                try files.moveItem(at: folder, to: place)
            } catch  where files.fileExists(atPath: place.path) {
                try files.removeItem(at: folder)
            }
            return place
        }
    }

    static func make(_ arguments: [String], in folder: URL, _ name: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["ffmpeg", "-y", "-loglevel", "error"] + arguments + [folder.appendingPathComponent(name).path]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw SampleMediaError(name: name) }
    }

    struct SampleMediaError: Error {
        var name: String
    }
}
