import Foundation
import HTTPRanges
package import SpoolStorage

/// The empty responses that some origins send instead of media.
extension MediaResource {
    /// The file name extensions of subtitles.
    private static let subtitleExtensions: Set<String> = ["vtt", "webvtt", "srt", "ttml", "dfxp"]

    /// Whether the origin sent an empty response although media is expected, probably because a program on it failed.
    ///
    /// The value is `false` for subtitles, and for files whose origin states a length of 0, because they may be empty.
    /// An empty response is requested again when the resource is opened again.
    package var isEmptyByMistake: Bool {
        guard let generation = resource?.generation, generation.isError, resource?.knownLength == 0 else {
            return false
        }
        let type = generation.resourceVersion.contentType?.lowercased() ?? ""
        let isSubtitle = type.hasPrefix("text/") || type.hasPrefix("application/ttml")
        return !isSubtitle && !Self.subtitleExtensions.contains(source.url.pathExtension.lowercased())
    }

    /// Removes a response for which ``isEmptyByMistake`` is `true`, because it would count as complete media.
    ///
    /// - Returns: The error to report.
    package func removeEmptyResponse() async -> CacheError {
        _ = try? await remove()  // The resource is requested again when it is opened again.
        return CacheError(.malformedResponse, "\(source.redactedURL): the origin sent an empty response", key: key)
    }
}
