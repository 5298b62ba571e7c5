import Foundation

/// The film that the demonstration plays when it is given none: a minute of moving picture and sound, made by ffmpeg.
///
/// Its index (the `moov` box) stands at the end, as encoders leave it, so that a player has to jump there before it can
/// begin. Noise in the picture makes it as large as a real film.
enum DemoMedia {
    static let name = "film.mp4"

    /// The media type of a file by its ending, for the origin to say.
    static func contentType(of file: URL) -> String {
        switch file.pathExtension.lowercased() {
        case "mp4", "m4v": "video/mp4"
        case "mov": "video/quicktime"
        case "m4a": "audio/mp4"
        case "mp3": "audio/mpeg"
        case "wav": "audio/wav"
        case "ogg", "oga", "opus": "audio/ogg"
        case "flac": "audio/flac"
        case "webm": "video/webm"
        case "mkv": "video/x-matroska"
        default: "application/octet-stream"
        }
    }
}
