#if Proxy
import Spool
import SpoolStreams
import Synchronization

/// The URLs that belong to each manifest, so that the stored parts of a stream are used, pinned and evicted together.
///
/// The table contains only streams that have an end. Live segments do not belong to a stored manifest, so they are
/// separate resources.
///
/// A manifest from the same origin takes precedence over one from another origin. Otherwise, a foreign manifest that
/// names the pinned files of a stream could cause them to be removed.
final class StreamMembers: Sendable {
    /// The manifest to which the URLs of a template belong.
    private struct Owner {
        let manifest: CacheKey
        /// Whether the manifest is from a different origin than the URLs of the template.
        let isForeign: Bool
    }

    private struct State {
        /// The manifest that was opened first, such as a master playlist, by the hash of each URL that belongs to it.
        var manifests: [Int: CacheKey] = [:]
        /// The manifests of the URLs that templates generate, by the text before the first variable of the template.
        var templates: [Substring: [DASHTemplate: Owner]] = [:]
        var templateCount = 0
        var templateBytes = 0
        /// The hashes of the URLs of recorded manifests.
        var addresses: Set<Int> = []
        /// The hash of the last recorded tag of each manifest.
        var tags: [CacheKey: Int] = [:]
    }

    private let state = Mutex(State())
    /// The maximum number of URLs, enough for about twenty feature-length videos in two-second segments and several
    /// variants.
    ///
    /// When it is reached, all URLs are forgotten together. If only some of them were forgotten, the tag of their
    /// manifest would prevent them from being recorded again.
    private static let limit = 500_000
    private static let manifestLimit = 10_000
    /// The maximum size of all templates together, in bytes.
    private static let templateBytes = 16 << 20
    /// The maximum number of templates with the same text before the first variable.
    private static let alikeLimit = 32
    /// The maximum number of digits in a URL that are tried as the start of a number.
    private static let digitLimit = 64

    /// Returns the key of the manifest that a URL belongs to, or `nil` if none is known.
    func manifest(of url: OriginURL) -> CacheKey? {
        let (known, hasTemplates) = state.withLock { ($0.manifests[url.hashValue], !$0.templates.isEmpty) }
        if known != nil || !hasTemplates { return known }
        let text = url.description[...]
        let digits = text.utf8.prefix(4096).indices.filter {
            text.utf8[$0] >= UInt8(ascii: "0") && text.utf8[$0] <= UInt8(ascii: "9")
        }
        return state.withLock { state in
            var foreign: CacheKey?
            // The number may start at any digit, but most likely at one of the last ones.
            for digit in digits.suffix(Self.digitLimit).reversed() {
                for (template, owner) in state.templates[text[..<digit]] ?? [:] where template.matches(text) {
                    if !owner.isForeign { return owner.manifest }
                    foreign = foreign ?? owner.manifest
                }
            }
            return foreign
        }
    }

    /// Records the URLs that belong to a playlist.
    ///
    /// - Parameters:
    ///   - url: The requested URL of the playlist.
    ///   - key: The key of the playlist.
    ///   - tag: A string that is different for each version of the playlist.
    ///   - found: The URL after redirects.
    func record(_ playlist: HLSPlaylist, at url: OriginURL, _ key: CacheKey, tag: String, found: OriginURL) {
        guard !hasRecorded(tag, of: key) else { return }
        guard let parts = try? playlist.parts(at: found) else { return }  // No request will look for invalid URLs.
        record(parts, [], at: url, key, tag: tag)
    }

    /// Records the URLs that belong to an MPD. The parameters are the same as for a playlist.
    func record(_ mpd: DASHDocument, at url: OriginURL, _ key: CacheKey, tag: String) {
        guard !hasRecorded(tag, of: key) else { return }
        let parts = DASHParts(of: mpd)
        record(parts.urls, parts.templates, at: url, key, tag: tag)
    }

    /// Returns whether the URLs in a version of a manifest are recorded.
    func hasRecorded(_ tag: String, of key: CacheKey) -> Bool { state.withLock { $0.tags[key] == tag.hashValue } }

    private func record(
        _ parts: [OriginURL], _ templates: [DASHTemplate], at url: OriginURL, _ key: CacheKey, tag: String
    ) {
        // The URLs are hashed before the lock is acquired, because every request for media acquires it.
        let hashes = parts.prefix(Self.limit).filter { $0 != url }.map { ($0.hashValue, $0.isSameOrigin(as: url)) }
        let (address, tagHash) = (url.hashValue, tag.hashValue)
        state.withLock { state in
            if state.manifests.count + state.templateCount + hashes.count + templates.count > Self.limit
                || state.tags.count > Self.manifestLimit || state.templateBytes > Self.templateBytes
            {
                state = State()
            }
            let manifest = state.manifests[address] ?? key
            state.tags[key] = tagHash
            state.addresses.insert(address)
            for (hash, isOwn) in hashes {
                let isTaken = state.manifests[hash] != nil || state.addresses.contains(hash)
                if isTaken, !isOwn { continue }
                state.manifests[hash] = manifest
            }
            for template in templates where state.templateBytes <= Self.templateBytes {
                let head = template.head[...]
                let alike = state.templates[head] ?? [:]
                // A template starts with a valid URL.
                let isForeign = (try? OriginURL(template.head))?.isSameOrigin(as: url) != true
                if alike[template] != nil {
                    if isForeign { continue }
                } else {
                    if alike.count >= Self.alikeLimit {
                        guard !isForeign, let other = alike.first(where: { $0.value.isForeign })?.key else { continue }
                        state.templates[head]?[other] = nil
                        state.templateCount -= 1
                        state.templateBytes -= other.byteCount
                    }
                    state.templateCount += 1
                    state.templateBytes += template.byteCount
                }
                state.templates[head, default: [:]][template] = Owner(manifest: manifest, isForeign: isForeign)
            }
        }
    }
}

extension HLSPlaylist {
    /// Returns the URLs that belong to the playlist, or an empty list if the playlist has no end.
    ///
    /// For a master playlist, these are the other playlists; for a media playlist, its segments, keys and
    /// initialization sections.
    fileprivate func parts(at url: OriginURL) throws(ManifestError) -> [OriginURL] {
        switch kind {
        case .media: return isEnded && !isDelta ? try downloads(at: url).map(\.url) : []
        case .master:
            let rewriter = ReferenceRewriter(finalURL: url) { $0.description }
            let keys = try downloads(at: url).map(\.url)
            return keys
                + (variants.map(\.uri) + renditions.compactMap(\.uri) + iFrameStreams).compactMap {
                    rewriter.url(of: $0)
                }
        }
    }
}
#endif
