#if Proxy
import Foundation
import HTTPTypes
import Spool
import Synchronization

/// The sources of the URLs that players have received.
///
/// The header fields and cookies of a source stay in the server, and the URL contains a secret instead.
/// `/.spool/source/SECRET/https/host/path` refers to the source at `https://host/path`. The URLs in a manifest get the
/// same prefix and therefore the same source.
///
/// Unlike a ``BoundedTable``, the registry never forgets many entries at once: a source must stay valid while its
/// player uses it.
final class SourceRegistry: Sendable {
    private struct Entry {
        let presentation: PresentationSource
        var lastUse: Int
        /// Whether a client has requested the URL of the source.
        var isRequested = false
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var uses = 0
    }

    /// The start of every path with a source.
    static let prefix = "/.spool/source/"
    private let cache: MediaCache
    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The maximum number of sources. If it is exceeded, the least recently used source of the host
    ///   with the most sources is forgotten. If more than half of all sources have never been requested, only these can
    ///   be forgotten.
    init(_ cache: MediaCache, limit: Int = 1024) {
        self.cache = cache
        self.limit = max(1, limit)
    }

    /// Returns the prefix for the path of an origin's URL. The same source always has the same prefix.
    func prefix(for source: MediaSource) -> String {
        prefix(for: source) { $0.isSame(as: source) }
    }

    /// Returns the prefix for the files of a stream whose origin has set cookies. The same jar always has the same
    /// prefix.
    ///
    /// Only clients that have received the manifest know the prefix, so that no other client's requests are sent with
    /// the cookies.
    func prefix(for cookies: CookieJar, at url: URL) -> String {
        var source = MediaSource(url: url)
        source.cookies = cookies
        return prefix(for: source) { $0.isPlain && $0.cookies === cookies }
    }

    private func prefix(for source: MediaSource, where isSame: (MediaSource) -> Bool) -> String {
        let secret = state.withLock { state in
            state.uses += 1
            if let known = state.entries.first(where: { isSame($0.value.presentation.source) }) {
                state.entries[known.key]?.lastUse = state.uses
                return known.key
            }
            if state.entries.count >= limit {
                // Any client can cause the creation of sources whose URLs it never requests. A few of these sources
                // belong to streams that are about to start.
                let unused = state.entries.filter { !$0.value.isRequested }
                let candidates = unused.count > limit / 2 ? unused : state.entries
                // One origin must not displace the streams of other origins.
                let hosts = Dictionary(grouping: candidates) { $0.value.presentation.source.url.host() }
                let largest = hosts.values.max { $0.count < $1.count } ?? []
                let oldest = largest.min { $0.value.lastUse < $1.value.lastUse }
                if let oldest { state.entries[oldest.key] = nil }
            }
            let secret = Secret.random()
            let presentation = PresentationSource(source, now: cache.now)
            state.entries[secret] = Entry(presentation: presentation, lastUse: state.uses)
            return secret
        }
        return Self.prefix + secret
    }

    /// Splits the target of a request into the target without the prefix, the prefix, and the source.
    ///
    /// - Returns: The three parts, or `nil` if the target has no such prefix.
    /// - Throws: `RequestFailure` with status 404 if the secret is unknown.
    func find(
        _ target: String
    ) throws(RequestFailure) -> (target: String, prefix: String, presentation: PresentationSource)? {
        guard target.hasPrefix(Self.prefix) else { return nil }
        let rest = target.dropFirst(Self.prefix.count)
        let secret = String(rest.prefix { $0 != "/" && $0 != "?" })
        // The hash table compares hashes first, so the time of a lookup does not reveal the secrets.
        let presentation = state.withLock { state in
            state.uses += 1
            state.entries[secret]?.lastUse = state.uses
            state.entries[secret]?.isRequested = true
            return state.entries[secret]?.presentation
        }
        guard let presentation else {
            throw RequestFailure(404, "this URL is no longer valid; request a new one from the app")
        }
        return (String(rest.dropFirst(secret.count)), Self.prefix + secret, presentation)
    }

    /// Returns a path without its secret.
    static func shown(_ path: Substring) -> Substring {
        path.hasPrefix(prefix) ? path.dropFirst(prefix.count).drop { $0 != "/" } : path
    }
}
#endif
