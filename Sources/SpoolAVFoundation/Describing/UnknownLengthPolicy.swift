#if canImport(AVFoundation) && !os(watchOS)
/// How to serve a media file whose length the origin does not tell, such as a chunked response or a live stream.
enum UnknownLengthPolicy: Sendable {
    /// Hand over its bytes, whichever are asked for, up to where they end.
    case serve
    /// Send the player to the origin itself, which plays it as if there were no cache.
    case redirect

    /// The policy that suits the player: Apple's takes a loader's resource without a length for damaged (−11829, −11849), but
    /// plays one over HTTP; the stand-in for Linux plays it from the loader and follows no redirect.
    static var platform: UnknownLengthPolicy {
        #if canImport(Darwin)
        .redirect
        #else
        .serve
        #endif
    }
}
#endif
