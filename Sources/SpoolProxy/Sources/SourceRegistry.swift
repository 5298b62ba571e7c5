#if Proxy
import Foundation
import HTTPTypes
import Spool
import Synchronization

/// The sources behind addresses that were handed to players: what is sent to an origin stays in here, and the address has
/// a secret in its place.
///
/// `/.spool/source/SECRET/https/host/path` is what the source at `https://host/path` becomes. All that a manifest there
/// names gets the same prefix, and so the same source.
final class SourceRegistry: Sendable {
    private struct Entry {
        let presentation: PresentationSource
        var lastUse: Int
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var uses = 0
    }

    /// What every such path begins with.
    static let prefix = "/.spool/source/"
    private let cache: MediaCache
    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: How many sources to keep; beyond that, the one goes that was used longest ago.
    init(_ cache: MediaCache, limit: Int = 1024) {
        self.cache = cache
        self.limit = max(1, limit)
    }

    /// The path before that of an origin's URL; the same for the same source.
    func prefix(for source: MediaSource) -> String {
        let secret = state.withLock { state in
            state.uses += 1
            if let known = state.entries.first(where: { $0.value.presentation.source.isSame(as: source) }) {
                state.entries[known.key]?.lastUse = state.uses
                return known.key
            }
            if state.entries.count >= limit,
                let oldest = state.entries.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                state.entries[oldest.key] = nil
            }
            let secret = Secret.drawn()
            let presentation = PresentationSource(source, now: cache.now)
            state.entries[secret] = Entry(presentation: presentation, lastUse: state.uses)
            return secret
        }
        return Self.prefix + secret
    }

    /// A request's target without the prefix, the prefix, and the source behind it.
    ///
    /// - Returns: Nil for a target without such a prefix.
    /// - Throws: `RequestFailure` with status 404 for a prefix that was not handed out, or not kept.
    func find(
        _ target: String
    ) throws(RequestFailure) -> (target: String, prefix: String, presentation: PresentationSource)? {
        guard target.hasPrefix(Self.prefix) else { return nil }
        let rest = target.dropFirst(Self.prefix.count)
        let secret = String(rest.prefix { $0 != "/" && $0 != "?" })
        // By its hash: how long it takes tells nothing of the secrets.
        let presentation = state.withLock { state in
            state.uses += 1
            state.entries[secret]?.lastUse = state.uses
            return state.entries[secret]?.presentation
        }
        guard let presentation else {
            throw RequestFailure(404, "this address is not good any more; the app can ask for another")
        }
        return (String(rest.dropFirst(secret.count)), Self.prefix + secret, presentation)
    }

    /// A path without the secret in it.
    static func shown(_ path: Substring) -> Substring {
        path.hasPrefix(prefix) ? path.dropFirst(prefix.count).drop { $0 != "/" } : path
    }
}
#endif
