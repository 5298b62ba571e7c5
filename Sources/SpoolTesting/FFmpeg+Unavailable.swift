#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
/// A replacement without ffmpeg, because an app on these systems can't start processes. Create media elsewhere and
/// include it.
enum FFmpeg {
    /// Reports that ffmpeg is missing, as a shell would.
    static func run(_ arguments: [String]) throws -> Int32 { 127 }
}
#endif
