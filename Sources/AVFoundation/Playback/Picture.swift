import CMPV
import Foundation

/// A decoded image with the top row first. Each pixel consists of one byte each for blue, green and red, and an unused
/// byte.
struct Picture: Sendable, Equatable {
    let width: Int
    let height: Int
    let bytesPerRow: Int
    let data: Data

    static let bytesPerPixel = 4

    /// Creates an image from its pixels.
    ///
    /// - Returns: `nil` if the data is too short for the size.
    init?(width: Int, height: Int, bytesPerRow: Int, data: Data) {
        let (row, overflowsRow) = width.multipliedReportingOverflow(by: Self.bytesPerPixel)
        let (count, overflows) = bytesPerRow.multipliedReportingOverflow(by: height)
        guard width > 0, height > 0, !overflowsRow, !overflows, bytesPerRow >= row, data.count >= count else {
            return nil
        }
        self.width = width
        self.height = height
        self.bytesPerRow = bytesPerRow
        self.data = data
    }

    /// Creates an image from the result of libmpv's `screenshot-raw` command, which is copied.
    init?(_ result: mpv_node) {
        guard result.format == MPV_FORMAT_NODE_MAP, let list = result.u.list?.pointee else { return nil }
        var numbers: [String: Int] = [:]
        var isKnownFormat = false
        var data: Data?
        for index in 0..<Int(list.num) {
            guard let name = list.keys[index].map({ String(cString: $0) }) else { continue }
            let value = list.values[index]
            switch value.format {
            case MPV_FORMAT_INT64: numbers[name] = Int(value.u.int64)
            case MPV_FORMAT_STRING: if name == "format" { isKnownFormat = String(cString: value.u.string) == "bgr0" }
            case MPV_FORMAT_BYTE_ARRAY:
                guard let bytes = value.u.ba?.pointee, let start = bytes.data else { continue }
                data = Data(bytes: start, count: bytes.size)
            default: break
            }
        }
        guard isKnownFormat, let data, let width = numbers["w"], let height = numbers["h"],
            let bytesPerRow = numbers["stride"]
        else { return nil }
        self.init(width: width, height: height, bytesPerRow: bytesPerRow, data: data)
    }
}

/// The image that a paused player shows, and its position.
struct Snapshot: Sendable, Equatable {
    /// The image, or `nil` if no image could be decoded yet. At the end, it is the image from before the last seek.
    var picture: Picture?
    /// The start of the image in seconds of media time, or `nil` if it is unknown.
    var seconds: Double?
    /// Whether the last seek reached the end without finding an image.
    var isAtEnd: Bool
    /// The average duration of an image in seconds, or `nil` if the container does not provide it.
    var pictureDuration: Double?

    init(picture: Picture?, seconds: Double?, isAtEnd: Bool, pictureDuration: Double? = nil) {
        self.picture = picture
        self.seconds = seconds
        self.isAtEnd = isAtEnd
        self.pictureDuration = pictureDuration
    }

    init(_ picture: Picture?, of handle: MPVHandle) {
        let rate = handle.number("container-fps") ?? 0
        self.init(
            picture: picture, seconds: handle.number("time-pos"), isAtEnd: handle.flag("eof-reached") == true,
            pictureDuration: rate > 0 ? 1 / rate : nil)
    }
}
