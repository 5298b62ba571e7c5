#if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
import Foundation

extension DemoMedia {
    /// No film: an app of these systems can't start ffmpeg.
    ///
    /// - Throws: ``CommandFailure``, always.
    static func make(in folder: URL) async throws -> URL {
        throw CommandFailure(.noFilm, "no film can be made on this system: name a file or a URL")
    }
}
#endif
