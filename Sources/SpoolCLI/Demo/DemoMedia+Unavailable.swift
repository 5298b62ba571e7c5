#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Foundation

extension DemoMedia {
    /// Throws, because apps on these systems can't start ffmpeg.
    ///
    /// - Throws: ``CommandFailure``, always.
    static func make(in folder: URL) async throws -> URL {
        throw CommandFailure(.noFilm, "this system can't generate a video: give a file or a URL")
    }
}
#endif
