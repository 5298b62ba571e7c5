#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
/// A stub for systems on which an app can't start processes. Create the media on another system, and bundle it with the
/// tests.
enum FFmpeg {
    /// Reports that ffmpeg is missing, as a shell would.
    static func run(_ arguments: [String]) throws -> Int32 { 127 }
}
#endif
