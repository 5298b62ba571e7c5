#if canImport(AVFoundation) && !os(watchOS)
import ByteRanges
import Foundation
import Spool

/// The type and length of a resource, which a player needs before the first byte.
struct ResourceDescription: Sendable, Hashable {
    /// The number of bytes, or `nil` if it is unknown.
    var length: Int64?
    /// The matching uniform type identifiers, best match first.
    var types: [String]
    /// Whether all bytes are in the cache, and therefore available immediately.
    var isComplete: Bool
    /// Whether the type is that of an HLS playlist.
    var isPlaylist = false
    /// Whether the player itself must load the resource from the origin or a server.
    var mustPlayDirectly: Bool

    /// Returns the type to report to the player, or `nil` if the player allows only other types.
    func contentType(allowed: [String]?) -> String? {
        UniformType.choose(from: types, allowed: allowed)
    }
}

extension ResourceDescription {
    /// Creates the description of a resource from the cache, and sends a request to the origin if necessary.
    ///
    /// - Parameter contentType: The app's media type, which takes precedence over the origin's type and the first
    ///   bytes.
    /// - Throws: `CacheError` if a request to the origin is necessary, and the origin does not respond or rejects the
    ///   request.
    init(of media: MediaResource, directLoading: DirectLoadingPolicy, contentType: String? = nil) async throws {
        // Without stored data, one request fetches both the headers and the first bytes.
        let start = try await media.isKnown ? nil : Self.start(of: media)
        let information = try await media.contentInformation()
        length = information.length
        isComplete = Self.isComplete(media, length: information.length)
        let declared = contentType ?? information.contentType
        isPlaylist = UniformType.isPlaylist(contentType: declared)
        mustPlayDirectly =
            isPlaylist || information.length == nil && directLoading == .redirect
        types = UniformType.candidates(contentType: declared, pathExtension: media.source.url.pathExtension)
        // A media type from the app is not compared with the first bytes.
        guard !mustPlayDirectly, contentType == nil || types.isEmpty else { return }
        do {
            let bytes = if let start { start } else { try await Self.storedStart(of: media, isNeeded: types.isEmpty) }
            let found = bytes.flatMap { UniformType.identifier(ofFileBeginning: $0) }
            types = UniformType.ordered(declared: types, found: found)
        } catch let error as CacheError where error.code == .unsatisfiableRange || !types.isEmpty {
            // The resource is empty, or its start is not available. The declared type is used in both cases.
        }
    }

    /// Returns the first bytes of a resource, which are fetched if necessary, or `nil` if the resource is empty.
    private static func start(of media: MediaResource) async throws -> Data? {
        do {
            return try await media.reader(.bytes(0..<Int64(UniformType.signatureLength))).next()?.data
        } catch let error as CacheError where error.code == .unsatisfiableRange {
            return nil
        }
    }

    /// Returns the first bytes of a partly stored resource. Missing bytes are fetched only if `isNeeded` is `true`.
    private static func storedStart(of media: MediaResource, isNeeded: Bool) async throws -> Data? {
        let storedRanges = media.knownStoredRanges
        guard isNeeded || storedRanges.isEmpty || storedRanges.contains(0..<1) else { return nil }
        return try await start(of: media)
    }

    static func isComplete(_ media: MediaResource, length: Int64?) -> Bool {
        length.map { media.knownStoredRanges.contains(0..<$0) } ?? false
    }
}

/// The rules that a loader follows: the type to report, whether to deliver the probe, and which resources the player
/// loads itself.
struct LoadingRules: Sendable {
    let directLoading: DirectLoadingPolicy
    /// The app's media type, which takes precedence over the origin's type and the first bytes.
    let contentType: String?
    let deliversProbe: Bool
}

/// The policy for resources that a loader can't provide, but that the player may load itself.
///
/// The length of such a resource is unknown, as in a chunked response or a live stream, or the transport can't load it.
enum DirectLoadingPolicy: Sendable {
    /// Serves a resource of unknown length until the response ends. A failure of the transport is an error.
    case serve
    /// Redirects the player to the origin, so that it plays without the cache.
    case redirect

    /// The policy for the platform's player.
    ///
    /// Apple's player cannot play a resource without a length from a loader (−11829, −11849), but can play such a
    /// resource over HTTP. The player for Linux plays the resource from the loader, and does not follow redirects.
    static var platform: DirectLoadingPolicy {
        #if canImport(Darwin)
        .redirect
        #else
        .serve
        #endif
    }
}
#endif
