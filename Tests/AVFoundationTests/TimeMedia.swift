import AVFoundation
import Foundation

/// Films whose pictures tell their number by their grey, made by ffmpeg: 10 pictures a second for 12 s, a key frame at each
/// second, grey twice the number of the picture.
enum TimeMedia: String, CaseIterable {
    case mp4 = "time.mp4"
    case mkv = "time.mkv"
    /// Without an index.
    case ts = "time.ts"
    /// Pictures 0, 10, 50 and 100 alone, each shown until the next.
    case slides = "slides.mp4"
    /// Turned by a quarter; 160 by 120 as it is stored.
    case turned = "turned.mp4"
    /// Pixels wider than high: 160 by 120 stored, 320 by 120 as it is shown.
    case wide = "wide.mp4"
    /// The first half of the file.
    case half = "half.mp4"
    /// The bytes of the pictures and sounds are noise.
    case noise = "noise.mp4"
    /// One picture.
    case single = "single.mp4"

    var bytes: Data { get throws { try Data(contentsOf: file) } }

    var file: URL { get throws { try Self.folder.get().appendingPathComponent(rawValue) } }

    /// Which picture an image is, by its middle.
    static func number(of image: CGImage) throws -> Int {
        guard let data = image.dataProvider?.data else { throw NoPixels() }
        let place = data.startIndex + image.height / 2 * image.bytesPerRow + image.width / 2 * 4
        return (Int(data[place]) + 1) / 2
    }

    struct NoPixels: Error {}

    private static let folder = TestMedia.folder("time-media-1") { folder in
        let picture = "color=black:size=160x120:rate=10:duration=12,format=gray,geq=lum='2*N'"
        let video = ["-f", "lavfi", "-i", picture]
        let sound = ["-f", "lavfi", "-i", "sine=duration=12"]
        // Without loss, so that a grey is the one that was asked for, give or take one.
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "0", "-pix_fmt", "yuv420p", "-g", "10"]
        let codecs = h264 + ["-c:a", "aac", "-movflags", "+faststart"]
        func make(_ media: TimeMedia, _ arguments: [String]) throws {
            try TestMedia.make(arguments, in: folder, media.rawValue)
        }
        let first = ["-i", folder.appendingPathComponent(TimeMedia.mp4.rawValue).path]
        try make(.mp4, video + sound + codecs)
        try make(.mkv, first + ["-c", "copy"])
        try make(.ts, first + ["-c", "copy", "-f", "mpegts"])
        try make(.turned, first + ["-c", "copy", "-metadata:s:v", "rotate=90"])
        try make(.slides, video + ["-vf", "select='eq(n,0)+eq(n,10)+eq(n,50)+eq(n,100)'", "-vsync", "vfr"] + h264)
        try make(.wide, video + ["-vf", "setsar=2"] + h264)
        try make(.single, video + ["-frames:v", "1"] + h264)
        let whole = try Data(contentsOf: folder.appendingPathComponent(TimeMedia.mp4.rawValue))
        try whole.prefix(whole.count / 2).write(to: folder.appendingPathComponent(TimeMedia.half.rawValue))
        guard let start = whole.range(of: Data("mdat".utf8))?.upperBound else { throw NoPixels() }
        var random = SystemRandomNumberGenerator()
        let noise = Data((start..<whole.count).map { _ in UInt8.random(in: 0...255, using: &random) })
        try (whole.prefix(start) + noise).write(to: folder.appendingPathComponent(TimeMedia.noise.rawValue))
    }
}
