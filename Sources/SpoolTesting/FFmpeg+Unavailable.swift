#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
/// There is none: an app of these systems starts no processes. Media has to be made elsewhere and brought along.
enum FFmpeg {
    /// Says that there is none, as a shell would.
    static func run(_ arguments: [String]) throws -> Int32 { 127 }
}
#endif
