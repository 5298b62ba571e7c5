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
    /// Whether it is an HLS playlist, by its type.
    var isPlaylist = false
    /// Whether the player has to go to the origin itself, or to a server.
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
    init(of media: MediaResource, unknownLength: UnknownLengthPolicy, mimeType: String? = nil) async throws {
        // Where nothing is known, one request brings all: the head of its response and the first bytes.
        let start = try await media.isKnown ? nil : Self.start(of: media)
        let information = try await media.contentInformation()
        length = information.length
        isComplete = Self.isComplete(media, length: information.length)
        let declared = mimeType ?? information.mimeType
        isPlaylist = UniformType.isPlaylist(mimeType: declared)
        mustPlayPlainly =
            isPlaylist || information.length == nil && unknownLength == .redirect
        types = UniformType.candidates(mimeType: declared, pathExtension: media.source.url.pathExtension)
        // What the app says is not doubted.
        guard !mustPlayPlainly, mimeType == nil || types.isEmpty else { return }
        do {
            let bytes = if let start { start } else { try await Self.storedStart(of: media, isNeeded: types.isEmpty) }
            let found = bytes.flatMap { UniformType.identifier(ofFileBeginning: $0) }
            types = UniformType.ordered(declared: types, found: found)
        } catch let error as CacheError where error.code == .unsatisfiableRange || !types.isEmpty {
            // An empty resource, or one whose beginning can't be had now: what was declared has to do.
        }
    }

    /// The first bytes, fetched if need be; nil if there are none.
    private static func start(of media: MediaResource) async throws -> Data? {
        do {
            return try await media.reader(.bytes(0..<Int64(UniformType.signatureLength))).next()?.data
        } catch let error as CacheError where error.code == .unsatisfiableRange {
            return nil
        }
    }

    /// The first bytes of what is known already. If others landed and they did not, they are fetched only if needed.
    private static func storedStart(of media: MediaResource, isNeeded: Bool) async throws -> Data? {
        let landed = media.landed
        guard isNeeded || landed.isEmpty || landed.contains(0..<1) else { return nil }
        return try await start(of: media)
    }

    static func isComplete(_ media: MediaResource, length: Int64?) -> Bool {
        length.map { media.landed.contains(0..<$0) } ?? false
    }
}
#endif
