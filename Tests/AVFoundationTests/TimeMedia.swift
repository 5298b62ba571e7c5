import AVFoundation
import Foundation

/// Videos that ffmpeg creates. Each frame shows its number as a gray value.
///
/// Each video contains 10 frames per second for 12 s, with a key frame every second. The gray value is twice the number
/// of the frame.
enum TimeMedia: String, CaseIterable {
    case mp4 = "time.mp4"
    case mkv = "time.mkv"
    /// A file without an index.
    case ts = "time.ts"
    /// A file that contains only frames 0, 10, 50 and 100. Each is displayed until the next one.
    case slides = "slides.mp4"
    /// A video that is displayed rotated by 90 degrees. The stored size is 160 by 120.
    case turned = "turned.mp4"
    /// A video whose pixels are wider than they are tall. The stored size is 160 by 120, and the display size is 320 by
    /// 120.
    case wide = "wide.mp4"
    /// The first half of the MP4 file.
    case half = "half.mp4"
    /// A file with noise instead of video and audio data.
    case noise = "noise.mp4"
    /// A video with a single frame.
    case single = "single.mp4"

    var bytes: Data { get throws { try Data(contentsOf: file) } }

    var file: URL { get throws { try Self.folder.get().appendingPathComponent(rawValue) } }

    /// Returns the number of the frame that an image shows. The number is read from the pixel in the center.
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
        // The video is lossless, so that each gray value differs by at most one from the intended value.
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
