@testable import SpoolStreams

/// The checks for every playlist: rewriting preserves the number of lines and the target of each reference.
enum HLSChecks {
    static func run(_ bytes: [UInt8], _ place: Place) {
        let playlist = try? HLSPlaylist(parsing: bytes, at: place.final)
        if let playlist { read(playlist, place) }
        guard let document = try? HLSDocument(parsing: bytes, at: place.final) else { return }
        precondition(document.playlist == playlist)
        _ = document.keyAddresses
        guard let written = try? document.rewritten(requestedURL: place.requested, proxied: Place.path) else { return }
        checkFilters(document, place)
        let newline = UInt8(ascii: "\n")
        precondition(bytes.count { $0 == newline } == written.count { $0 == newline })
        // The playlists are not compared if the client can't parse the rewritten one. For example, the query of the
        // requested URL may lack the value of a variable.
        guard let playlist, let seen = try? HLSPlaylist(parsing: written, at: place.requested) else { return }
        precondition(playlist.kind == seen.kind && playlist.lifetime == seen.lifetime)
        for (old, new) in zip(references(playlist), references(seen)) { place.check(new, old) }
        precondition(references(playlist).count == references(seen).count)
        precondition(playlist.segments.map(\.duration) == seen.segments.map(\.duration))
    }

    /// Checks that a filtered playlist can still be parsed, and has no more variants than before.
    private static func checkFilters(_ document: HLSDocument, _ place: Place) {
        var limited = document
        limited.limitBitRate(to: 1000)
        guard let playlist = document.playlist, let remaining = limited.playlist,
            let text = try? limited.rewritten(proxied: \.description),
            let seen = try? HLSPlaylist(parsing: text, at: place.final)
        else { return }
        // A tag without a URI may be followed by the URI of a removed variant.
        precondition(seen.variants.count >= remaining.variants.count)
        precondition(remaining.variants.count <= playlist.variants.count)
        precondition(playlist.variants.isEmpty || !remaining.variants.isEmpty)
    }

    private static func references(_ playlist: HLSPlaylist) -> [String] {
        playlist.variants.map(\.uri) + playlist.renditions.compactMap(\.uri) + playlist.iFrameStreams
            + playlist.sessionKeys.map(\.uri) + playlist.segments.map(\.uri) + playlist.segments.compactMap(\.map?.uri)
            + playlist.segments.flatMap(\.keys).map(\.uri)
    }

    private static func read(_ playlist: HLSPlaylist, _ place: Place) {
        for range in playlist.segments.compactMap(\.byteRange) { precondition(!range.isEmpty && range.lowerBound >= 0) }
        if case .seconds(let seconds) = playlist.lifetime { precondition(seconds >= 0 && seconds <= 1e9) }
        let limit = HLSResolution(width: 1280, height: 720)
        for selection in [.highest, .lowest, .bandwidth(atMost: 1000), .resolution(atMost: limit)]
            as [HLSVariantSelection]
        {
            precondition((selection.choose(from: playlist.variants) == nil) == playlist.variants.isEmpty)
            _ = try? playlist.playlists(for: selection, at: place.final)
        }
        if let downloads = try? playlist.downloads(at: place.final) {
            precondition(Set(downloads).count == downloads.count)
        }
    }
}
