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
    /// - Parameter mimeType: what the app says that it is, whatever the origin says and the bytes look like.
    /// - Throws: `CacheError` when the origin has to be asked and does not respond, or refuses.
    init(of media: Media, unknownLength: UnknownLengthPolicy, mimeType: String? = nil) async throws {
        let information = try await media.contentInformation()
        length = information.length
        isComplete = Self.isComplete(media, length: information.length)
        let declared = mimeType ?? information.contentType
        mustPlayPlainly =
            UniformType.isPlaylist(mimeType: declared) || information.length == nil && unknownLength == .redirect
        types = UniformType.candidates(mimeType: declared, pathExtension: media.source.url.pathExtension)
        // What the app says is not doubted.
        guard !mustPlayPlainly, mimeType == nil || types.isEmpty else { return }
        do {
            types = UniformType.ordered(
                declared: types, found: try await Self.container(of: media, isNeeded: types.isEmpty))
        } catch let error as CacheError where error.code == .unsatisfiableRange || !types.isEmpty {
            // An empty resource, or one whose beginning can't be had now: what was declared has to do.
        }
    }

    /// The container that the first bytes are of; nil if they are of none that is known.
    ///
    /// They are what landed first, or are on their way. If others landed and they did not, they are fetched only if needed.
    private static func container(of media: Media, isNeeded: Bool) async throws -> String? {
        let landed = media.landed
        guard isNeeded || landed.isEmpty || landed.contains(0..<1) else { return nil }
        let start = try await media.reader(.bytes(0..<Int64(UniformType.signatureLength))).next()
        return start.flatMap { UniformType.identifier(ofFileBeginning: $0.data) }
    }

    static func isComplete(_ media: Media, length: Int64?) -> Bool {
        length.map { media.landed.contains(0..<$0) } ?? false
    }
}
#endif
