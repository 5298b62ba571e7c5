#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
/// A replacement for ffmpeg on systems on which an app can't start processes. For these systems, create the media
/// elsewhere and include it in the app.
enum FFmpeg {
    /// Reports that ffmpeg is missing, as a shell would.
    static func run(_ arguments: [String]) throws -> Int32 { 127 }
}
#endif
