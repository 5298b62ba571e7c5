#if Proxy
import HTTPTypes
import Spool
import SpoolStreams
import Synchronization

/// Information from playlists and manifests that the server needs for later requests.
///
/// The object neither reads nor rewrites manifests. When a table is full, its oldest entries are forgotten. They are
/// recorded again when their manifest is next requested. The object is safe to use from any thread.
final class StreamKnowledge: Sendable {
    private struct Facts {
        /// The kinds of the versions that have been examined. The kind is `nil` for versions that are not manifests.
        var kinds = BoundedTable<String, ManifestKind?>(count: StreamKnowledge.limit)
        /// The variables that a media playlist may import, by its URL without delivery directives.
        var variables = BoundedTable<String, [String: String]>(count: StreamKnowledge.variablesLimit)
        /// The variables in the master playlists of one client, by the URL of the media playlist and the hash of the
        /// client's fields. A variable is `nil` if these master playlists define different values.
        var clientVariables = BoundedTable<String, [String: String?]>(count: StreamKnowledge.variablesLimit)
        /// The times for which reloads may be held, by the URL of the playlist without delivery directives.
        var reloadHolds = BoundedTable<String, Duration>(count: StreamKnowledge.limit)
        /// The times for which partial segments may be held, by the URL of the segment.
        var partHolds = BoundedTable<String, Duration>(count: StreamKnowledge.limit)
        /// The origins whose manifests refer to an origin, directly or through other manifests.
        var roots = BoundedTable<String, Set<String>>(count: StreamKnowledge.limit)
        /// The number of other origins to which the manifests of an origin refer.
        var referencedOriginCounts = BoundedTable<String, Int>(count: StreamKnowledge.limit)
        /// The origins whose manifests name more origins than are recorded, and the origins whose manifests refer to
        /// these origins.
        var originsOverLimit: Set<String> = []
        /// Whether ``originsOverLimit`` is incomplete because there are too many such origins.
        var hasMoreNamers = false
        /// The origin to which credentials were sent first, by the hash of the credentials.
        var credentials = BoundedTable<Int, String>(count: StreamKnowledge.limit)
    }

    private let facts = Mutex(Facts())
    /// The hashes of the URLs of keys.
    private let keys: Mutex<BoundedTable<Int, Void>>
    private let members = StreamMembers()

    private static let limit = 4096
    /// The maximum number of referring origins that are remembered for one origin.
    private static let rootLimit = 16
    /// The maximum number of origins that are recorded for the manifests of one origin.
    private static let namedLimit = 256
    private static let variablesLimit = 1000
    /// The maximum number of media playlists of one master playlist whose variables are remembered.
    private static let importerLimit = 100
    /// The maximum size of the variables of one playlist, in bytes.
    private static let variablesBytes = 16 << 10
    private static let keyBytes = MemoryLayout<Int>.size

    /// - Parameter keyLimit: The maximum number of keys. At least the most recent half of them is remembered. The
    ///   default is the number that a playlist can contain.
    init(keyLimit: Int = 2 * HLSPlaylist.maximumSegments) {
        keys = Mutex(BoundedTable(count: keyLimit, bytes: keyLimit * Self.keyBytes))
    }

    // MARK: - Lookups for requests

    /// Returns the kind of a version: `.some(nil)` if it is not a manifest, or `nil` if it has not been examined.
    func kind(ofVersion name: String) -> ManifestKind?? { facts.withLock { $0.kinds[name] } }

    /// The variables that a media playlist may import.
    struct ImportableVariables: Sendable {
        /// The values from the client's master playlist if they are known, otherwise those from the most recent master
        /// playlist.
        var values: [String: String] = [:]
        /// The names of the variables whose values may belong to another client.
        var withheld: Set<String> = []
    }

    /// Returns the variables that a media playlist may import, if any.
    ///
    /// - Parameter fields: The fields of the client's request.
    func variables(for playlist: OriginURL, _ fields: HTTPFields) -> ImportableVariables {
        let name = HLSDelivery.withoutDirectives(playlist)
        return facts.withLock { facts in
            guard let values = facts.variables[name] else { return ImportableVariables() }
            // The entries are recorded again, so that they are not forgotten while they are in use.
            facts.variables.record(values, for: name, bytes: Self.size(of: values) + name.utf8.count)
            let clientName = name + fields.userHash
            let recorded = facts.clientVariables[clientName] ?? [:]
            if !recorded.isEmpty {
                facts.clientVariables.record(
                    recorded, for: clientName, bytes: Self.size(of: recorded) + clientName.utf8.count)
            }
            let known = recorded.compactMapValues { $0 }
            return ImportableVariables(
                values: values.merging(known) { _, own in own }, withheld: Set(values.keys).subtracting(known.keys))
        }
    }

    /// Returns the time for which an origin may hold the response to a request, or `nil` if it may not.
    ///
    /// An origin holds a reload until the segment or part that the request names exists (RFC 8216bis §6.2.5.2). It also
    /// holds the response for a partial segment that a preload hint names, until that segment exists (§4.4.5.3).
    func responseHold(for url: OriginURL) -> Duration? {
        if let hold = facts.withLock({ $0.partHolds[url.description] }) { return hold }
        guard HLSDelivery.isBlockingReload(url) else { return nil }
        let name = HLSDelivery.withoutDirectives(url)
        return facts.withLock { $0.reloadHolds[name] } ?? Self.hold(targetDuration: Self.usualTargetDuration)
    }

    /// Returns whether a playlist contains the URL as the URL of a key.
    func isKey(_ url: OriginURL) -> Bool {
        guard keys.withLock({ !$0.isEmpty }) else { return false }
        let hash = Self.hash(ofKey: url)
        return keys.withLock { $0[hash] != nil }
    }

    /// Returns the key of the manifest that a URL belongs to, or `nil` if none is known.
    func manifest(of url: OriginURL) -> CacheKey? { members.manifest(of: url) }

    /// Returns whether the URLs in this version of a manifest are recorded.
    func hasMembers(of key: CacheKey, tag: String) -> Bool { members.hasRecorded(tag, of: key) }

    /// Returns whether credentials may be sent to the origin of a URL, and records that they are sent there.
    ///
    /// The credentials may not be sent if they were first sent to another origin whose manifests refer to this origin.
    /// To a client, all origins look like this server, so the client sends the credentials for one origin to all of
    /// them. This applies to `Basic` and `Digest`, which clients manage for each origin. An app that uses another
    /// scheme sets it for all requests.
    ///
    /// After a restart of the server, the first origin that a client uses counts as the owner of the credentials. If
    /// entries were forgotten, the credentials are not sent to an origin that a manifest may have named.
    ///
    /// - Parameter client: The network of the client. `Digest` credentials have an owner for each network, because they
    ///   are recognized only by their user name, which other clients can use too.
    func mayReceive(_ url: OriginURL, credentials: String, from client: String) -> Bool {
        let scheme = credentials.prefix { $0 != " " && $0 != "\t" }.lowercased()
        guard scheme == "basic" || scheme == "digest" else { return true }
        // The digest differs for each request, but the user name does not.
        let name = /(?i)\busername\*?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/
        let user = credentials.firstMatch(of: name).map { client + " " + String($0.1 ?? $0.2 ?? "") } ?? credentials
        let origin = url.origin
        return facts.withLock { facts in
            let roots = facts.roots[origin] ?? []
            guard let first = facts.credentials[user.hashValue] else {
                if facts.credentials.hasForgotten, !roots.isEmpty { return false }
                facts.credentials.record(origin, for: user.hashValue, bytes: origin.utf8.count)
                return true
            }
            if first == origin { return true }
            guard !facts.hasMoreNamers, !facts.originsOverLimit.contains(first), !facts.roots.hasForgotten else {
                return false
            }
            return !roots.contains(first) && roots.count < Self.rootLimit
        }
    }

    // MARK: - Facts from manifests

    /// Records that a manifest contains a URL of another origin.
    func record(_ url: OriginURL, namedBy manifest: OriginURL) {
        guard !url.isSameOrigin(as: manifest) else { return }
        let (origin, namer) = (url.origin, manifest.origin)
        facts.withLock { facts in
            if facts.roots[origin]?.contains(namer) != true {
                let count = (facts.referencedOriginCounts[namer] ?? 0) + 1
                facts.referencedOriginCounts.record(count, for: namer, bytes: namer.utf8.count)
                guard count <= Self.namedLimit else { return Self.recordMoreOrigins(namedBy: namer, in: &facts) }
            }
            var roots = (facts.roots[origin] ?? []).union(facts.roots[namer] ?? [])
            roots.insert(namer)
            roots.remove(origin)
            let kept = Set(roots.prefix(Self.rootLimit))
            // The set is recorded again each time, so that it is not forgotten while it is in use.
            facts.roots.record(kept, for: origin, bytes: kept.reduce(origin.utf8.count) { $0 + $1.utf8.count })
        }
    }

    /// Records that a manifest names more origins than are recorded.
    func recordMoreOrigins(namedBy manifest: OriginURL) {
        facts.withLock { Self.recordMoreOrigins(namedBy: manifest.origin, in: &$0) }
    }

    private static func recordMoreOrigins(namedBy namer: String, in facts: inout Facts) {
        facts.originsOverLimit.insert(namer)
        facts.originsOverLimit.formUnion(facts.roots[namer] ?? [])
        guard facts.originsOverLimit.count > limit else { return }
        facts.hasMoreNamers = true
        facts.originsOverLimit = []
    }

    /// Records the kind of a version, or `nil` if it is not a manifest.
    func record(_ kind: ManifestKind?, ofVersion name: String) {
        facts.withLock { $0.kinds.record(kind, for: name, bytes: name.utf8.count) }
    }

    /// Records the keys that a playlist names.
    func record(keys addresses: [OriginURL]) {
        let hashes = addresses.map(Self.hash(ofKey:))
        keys.withLock { keys in
            for hash in hashes { keys.record((), for: hash, bytes: Self.keyBytes) }
        }
    }

    /// Records the information in a playlist that later requests need.
    ///
    /// - Parameters:
    ///   - requested: The URL that was requested.
    ///   - fields: The fields of the client's request.
    ///   - found: The URL after redirects.
    ///   - key: The key of the playlist.
    ///   - tag: A string that is different for each version of the playlist.
    func record(
        _ playlist: HLSPlaylist, requested: OriginURL, _ fields: HTTPFields, found: OriginURL, key: CacheKey,
        tag: String
    ) {
        recordVariables(of: playlist, fields, found: found)
        recordHolds(of: playlist, requested: requested, found: found)
        members.record(playlist, at: requested, key, tag: tag, found: found)
    }

    /// Records the files of a stream that has ended, from its MPD. The parameters are the same as for a playlist.
    func record(_ mpd: DASHDocument, requested: OriginURL, key: CacheKey, tag: String) {
        members.record(mpd, at: requested, key, tag: tag)
    }

    /// Records the variables that a master playlist defines for its media playlists.
    ///
    /// Media playlists from other origins do not import these variables. Otherwise, any origin could determine the URLs
    /// in another origin's playlist, for all clients.
    ///
    /// Values may contain credentials. Two clients may have the same fields, so a value that differs between their
    /// master playlists is not used for either of them. A parameter of the master playlist's query is never used.
    private func recordVariables(of playlist: HLSPlaylist, _ fields: HTTPFields, found: OriginURL) {
        guard playlist.kind == .master, !playlist.variables.isEmpty else { return }
        var variables: [String: String?] = playlist.variables.mapValues { $0 }
        for name in playlist.queryVariables { variables.updateValue(nil, forKey: name) }
        let (bytes, client) = (Self.size(of: variables), fields.userHash)
        guard bytes <= Self.variablesBytes else { return }
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        let uris = playlist.variants.map(\.uri) + playlist.renditions.compactMap(\.uri) + playlist.iFrameStreams
        let importers = uris.prefix(Self.importerLimit).compactMap { rewriter.url(of: $0) }
        let names = importers.filter { $0.isSameOrigin(as: found) }.map(HLSDelivery.withoutDirectives)
        facts.withLock { facts in
            for name in names {
                facts.variables.record(playlist.variables, for: name, bytes: bytes + name.utf8.count)
                let clientName = name + client
                let merged = (facts.clientVariables[clientName] ?? [:]).merging(variables) { $0 == $1 ? $0 : nil }
                facts.clientVariables.record(
                    merged, for: clientName, bytes: Self.size(of: merged) + clientName.utf8.count)
            }
        }
    }

    /// Returns the size of variables in bytes.
    private static func size(of variables: [String: String?]) -> Int {
        variables.reduce(0) { $0 + $1.key.utf8.count + ($1.value?.utf8.count ?? 0) }
    }

    /// Records the times for which the next responses may be held.
    private func recordHolds(of playlist: HLSPlaylist, requested: OriginURL, found: OriginURL) {
        guard playlist.isLowLatency, let seconds = playlist.targetDuration else { return }
        let hold = Self.hold(targetDuration: .seconds(min(seconds, 3600)))
        let parts = playlist.preloadHints.prefix(Self.limit).compactMap { uri in
            try? OriginURL(URIReference(uri).resolved(against: found.reference))  // An invalid URL can't be requested.
        }
        // A playlist must not limit the time for responses of other origins.
        .filter { $0.isSameOrigin(as: found) }.map(\.description)
        let name = HLSDelivery.withoutDirectives(requested)
        facts.withLock { facts in
            facts.reloadHolds.record(hold, for: name, bytes: name.utf8.count)
            for part in parts { facts.partHolds.record(hold, for: part, bytes: part.utf8.count) }
        }
    }

    /// The target duration to assume for an unknown playlist, from Apple's HLS Authoring Specification.
    private static let usualTargetDuration = Duration.seconds(6)
    /// The maximum time to wait for a response that an origin holds.
    private static let longestHold = Duration.seconds(60)

    /// Returns three target durations (RFC 8216bis §6.2.5.2), up to the maximum.
    private static func hold(targetDuration: Duration) -> Duration { min(targetDuration * 3, longestHold) }

    /// Returns a hash that is the same for all percent-encodings of a URL.
    private static func hash(ofKey url: OriginURL) -> Int { url.description.percentDecoded.hashValue }
}

extension OriginURL {
    /// The scheme, the host and the port.
    fileprivate var origin: String { "\(scheme.rawValue)://\(host):\(effectivePort)" }
}
#endif
