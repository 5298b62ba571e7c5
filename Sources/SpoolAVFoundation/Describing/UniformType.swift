#if canImport(AVFoundation) && !os(watchOS)
import Foundation
#if canImport(UniformTypeIdentifiers)
import UniformTypeIdentifiers
#endif

/// Finds the uniform type identifier that a player wants (`public.mp3`) for what an origin says (`audio/mpeg`).
///
/// On Apple platforms the system knows most types; a table of our own serves elsewhere, and for what the system does
/// not know. Pure.
enum UniformType {
    /// Identifiers that fit, best first; empty if neither media type nor file name tells.
    ///
    /// - Parameters:
    ///   - mimeType: the origin's `Content-Type`, parameters and all. Types that servers send for anything they do not
    ///     know (`application/octet-stream`, `text/plain`) do not count.
    ///   - pathExtension: of the URL, without its dot.
    static func candidates(mimeType: String?, pathExtension: String) -> [String] {
        var found: [String] = []
        let type = essence(mimeType)
        let ending = pathExtension.lowercased()
        if let type, !undecided.contains(type) {
            found += system(mimeType: type) + (byMediaType[type].map { [$0] } ?? [])
        }
        found += system(pathExtension: ending) + (byPathExtension[ending].map { [$0] } ?? [])
        var seen: Set<String> = []
        return found.filter { seen.insert($0).inserted }
    }

    /// Types in the order in which they are to be believed: the container that the first bytes are of goes before what was
    /// declared, unless both are read by one demuxer, where the declared type is the more exact.
    static func ordered(declared: [String], found: String?) -> [String] {
        guard let found else { return declared }
        let agreeing = declared.filter { type in
            type == found || containers.contains { $0.contains(type) && $0.contains(found) }
        }
        var seen: Set<String> = []
        return (agreeing + [found] + declared).filter { seen.insert($0).inserted }
    }

    /// The type to tell a player: the best that it allows, or else a near relative that it allows.
    ///
    /// - Parameter allowed: what the player accepts; nil or empty means anything. Telling it another is an exception
    ///   in AVFoundation, so nil is given when nothing fits.
    static func choose(from candidates: [String], allowed: [String]?) -> String? {
        guard let allowed, !allowed.isEmpty else { return candidates.first ?? "public.data" }
        func allowedSpelling(_ identifier: String) -> String? {
            allowed.first { $0.lowercased() == identifier.lowercased() }
        }
        for candidate in candidates {
            if let spelling = allowedSpelling(candidate) { return spelling }
        }
        for candidate in candidates {
            for family in families where family.contains(candidate) {
                for relative in family {
                    if let spelling = allowedSpelling(relative) { return spelling }
                }
            }
        }
        return allowedSpelling("public.data")
    }

    /// Whether it is an HLS playlist (RFC 8216 §4), which a player has to load itself.
    static func isPlaylist(mimeType: String?) -> Bool {
        [
            "application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl",
            "application/dash+xml",
        ].contains(essence(mimeType))
    }

    /// Type and subtype, without parameters (RFC 9110 §8.3.1).
    private static func essence(_ mimeType: String?) -> String? {
        mimeType?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    }

    private static func system(mimeType: String) -> [String] {
        #if canImport(UniformTypeIdentifiers)
        declared(UTType(mimeType: mimeType))
        #else
        []
        #endif
    }

    private static func system(pathExtension: String) -> [String] {
        #if canImport(UniformTypeIdentifiers)
        declared(pathExtension.isEmpty ? nil : UTType(filenameExtension: pathExtension))
        #else
        []
        #endif
    }

    #if canImport(UniformTypeIdentifiers)
    /// Only media: a type that the system makes up (`dyn.…`), or a page of text, tells a player nothing.
    private static func declared(_ type: UTType?) -> [String] {
        guard let type, !type.isDynamic, type.conforms(to: .audiovisualContent) else { return [] }
        return [type.identifier]
    }
    #endif
}
#endif
