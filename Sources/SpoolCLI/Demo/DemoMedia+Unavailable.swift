#if Tools
#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Foundation

extension DemoMedia {
    /// Throws an error, because apps on these systems can't start ffmpeg.
    ///
    /// - Throws: ``CommandFailure``, always.
    static func make(in folder: URL) async throws -> URL {
        throw CommandFailure(.noVideo, "this system can't generate a video; give a file or a URL")
    }
}

/// Other players, which apps on these systems cannot start.
enum ExternalPlayer {
    /// Returns `nil`, because no player can be started.
    static func play(_ url: URL) async throws -> (name: String, ended: Bool)? { nil }
}
#endif
#endif
