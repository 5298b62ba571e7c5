#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
/// A replacement for ffmpeg on systems on which an app can't start processes. On these systems, tests can use only
/// media that was created elsewhere and is included in the app.
enum FFmpeg {
    /// Reports that ffmpeg is missing, as a shell would.
    static func run(_ arguments: [String]) throws -> Int32 { 127 }
}
#endif
