#if canImport(AVFoundation) && !os(watchOS)
import ByteRanges
import Foundation
import Spool

/// Type and length of a media file, as a player is told them before the first byte.
struct ResourceDescription: Sendable, Hashable {
    /// Number of bytes; nil if the origin does not tell.
    var length: Int64?
    /// Uniform type identifiers that fit, best first.
    var types: [String]
    /// Whether every byte is in the cache, so that all can be handed over at once.
    var isComplete: Bool
    /// Whether the player has to go to the origin itself.
    var mustPlayPlainly: Bool

    /// The type to tell the player; nil if it allows some and none of them fits.
    func contentType(allowed: [String]?) -> String? {
        UniformType.choose(from: types, allowed: allowed)
    }
}

extension ResourceDescription {
    /// Asks the cache, and through it the origin if need be.
    ///
    /// - Throws: `CacheError` when the origin has to be asked and does not respond, or refuses.
    init(of media: Media, unknownLength: UnknownLengthPolicy) async throws {
        let information = try await media.contentInformation()
        length = information.length
        isComplete = information.length.map { media.landed.contains(0..<$0) } ?? false
        mustPlayPlainly =
            UniformType.isPlaylist(mimeType: information.contentType)
            || information.length == nil && unknownLength == .redirect
        types = UniformType.candidates(
            mimeType: information.contentType, pathExtension: media.source.url.pathExtension)
        if types.isEmpty, !mustPlayPlainly, let start = try await media.reader(.bytes(0..<64)).next() {
            types = UniformType.identifier(ofFileBeginning: start.data).map { [$0] } ?? []
        }
    }
}
#endif
