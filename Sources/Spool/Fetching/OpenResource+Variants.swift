import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

/// Under ``FreshnessPolicy/http`` an origin may send different bytes to requests with different fields: by credentials
/// (RFC 9111 §3.5), and by what `Vary` names (§4.1). The first variant that was stored has the key itself; others have
/// keys made from it, and name what they were made from: ``StoredFreshness/variantOf``.
extension OpenResource {
    /// The key under which the variant for a request of `credentials` is, or would be, stored.
    func storageKey(for credentials: SourceCredentials) async throws -> CacheKey {
        try await variant(for: credentials).key
    }

    /// The same, with the keys whose variant it is.
    private func variant(for credentials: SourceCredentials) async throws -> (key: CacheKey, of: [CacheKey]) {
        guard context.configuration.freshness == .http else { return (key, []) }
        let everyone = credentials.source.key(by: context.configuration.keyPolicy)
        let fields = try await headerFields(of: credentials)
        // A source that resolves its credentials could not have them in its key before.
        let own = credentials.source.resolver == nil ? key : key.with(credentialsIn: fields)
        let store = try await context.store
        // One that is only beginning has the key, too, and will take the place of what is stored there.
        var description = store.openDescription(of: own)
        if description == nil { description = try await store.lease(own, user: nil)?.generation.description }
        guard let description, let freshness = StoredFreshness(encoded: description.fields),
            !freshness.matches(fields)
        else { return (own, own == everyone ? [] : [everyone]) }
        let selected = CacheKey(own.hash + "\n" + freshness.selection(by: fields))
        return (selected, own == everyone ? [own] : [everyone, own])
    }

    func headerFields(of credentials: SourceCredentials) async throws -> HTTPFields {
        guard credentials.source.isResolved else { return credentials.source.headerFields }
        return try await unlessClosed { try await credentials.resolved().request.headerFields }
    }

    /// Whether what is stored can be opened only when the source's resolver has answered.
    func waitsForResolver(of credentials: SourceCredentials) -> Bool {
        context.configuration.freshness == .http && credentials.source.isResolved && !isLoaded
    }

    /// A lease on what is stored of the variant; nil if nothing is.
    func leaseVariant(for credentials: SourceCredentials) async throws -> Lease? {
        if let apart {
            guard let version = apart.beside else { return nil }
            state.withLock { $0.storageKey = version.key }
            return try await context.store.leaseOpen(version.key, user: self) { $0 === version }
        }
        for _ in 0..<3 {
            let key = try await storageKey(for: credentials)
            let lease = try await context.store.lease(key, user: self)
            state.withLock { $0.storageKey = key }
            guard let lease else { return nil }
            if lease.generation.storedFreshness?.isSuperseded == true {
                lease.end()
                return nil
            }
            if try await isVariant(lease.generation, for: credentials) { return lease }
            // Another variant has taken this place since the look at what it varies by.
            lease.end()
        }
        return nil
    }

    private func isVariant(_ generation: Generation, for credentials: SourceCredentials) async throws -> Bool {
        guard context.configuration.freshness == .http,
            let freshness = StoredFreshness(encoded: generation.description.fields)
        else { return true }
        return freshness.matches(try await headerFields(of: credentials))
    }

    /// Begins a version under the key of its variant.
    func beginVariant(
        _ description: GenerationDescription, for credentials: SourceCredentials, isKept: Bool,
        replacing former: Generation?
    ) async throws -> Lease {
        let store = try await context.store
        guard context.configuration.freshness == .http else {
            return try begin(key, description, isKept: isKept, in: store)
        }
        // Two variants of a resource that begin at once must not take each other for their own.
        return try await context.variants.run(self.key) {
            var (key, isKept, description) = (key, isKept, description)
            do {
                let variant = try await variant(for: credentials)
                key = variant.key
                if !variant.of.isEmpty, var freshness = StoredFreshness(encoded: description.fields) {
                    freshness.variantOf = variant.of.map(\.hash)
                    description.fields = freshness.encoded
                }
            } catch let error as CacheError where error.code == .storage {
                // Which variant is stored can't be known now, so this one must not take its place.
                isKept = false
                send(.notKept(cause: error))
            }
            state.withLock { $0.storageKey = key }
            // The same bytes for requests with other fields: both resources fill one version, rather than that one takes
            // the other's place under its readers.
            let version = ResourceVersion(encoded: description.version)
            if isKept, let version, version.validator.isStrong,
                let lease = store.leaseOpen(
                    key, user: self,
                    where: {
                        $0 !== former && $0.resourceVersion.validator.stronglyMatches(version.validator)
                            && Self.isPossible(description.length, of: $0)
                    })
            {
                if let length = description.length, lease.generation.description.length == nil {
                    lease.generation.learn(length: length)
                }
                return lease
            }
            // Nothing proves that this is the version that another resource is fetching for its readers, so it must not
            // replace that version.
            if isKept, let version,
                store.isFilled(key, besides: self, where: { Self.isUnproven(version, against: $0) })
            {
                isKept = false
            }
            return try begin(key, description, isKept: isKept && apart == nil, in: store)
        }
    }

    private static func isUnproven(_ version: ResourceVersion, against generation: Generation) -> Bool {
        let landing = PartialResponse.Landing(offset: 0, end: version.length, version: version)
        let end = generation.landed.bounds?.upperBound ?? 0
        let stored = StoredVersion(version: generation.resourceVersion, storedEnd: end)
        return landing.isUnproven(against: stored, rule: .strong)
    }

    /// Whether a version may be so long; nil: a response that does not say, as one without a total (RFC 9110 §14.4).
    private static func isPossible(_ length: Int64?, of generation: Generation) -> Bool {
        guard let length else { return true }
        if let known = generation.description.length { return known == length }
        return generation.landed.bounds?.upperBound ?? 0 <= length
    }

    private func begin(
        _ key: CacheKey, _ description: GenerationDescription, isKept: Bool, in store: Store
    ) throws -> Lease {
        try store.begin(
            key, url: address, description: description, in: presentation, isKept: isKept, user: self)
    }

    /// What it is a part of, as its last source has said.
    var presentation: CacheKey? { state.withLock { $0.presentation } }

    /// What the source of a player says of it.
    func note(_ source: MediaSource) {
        guard source.presentation != nil || source.isPlayedOnce || source.tag != nil else { return }
        state.withLock { state in
            if let presentation = source.presentation { state.presentation = presentation }
            if source.isPlayedOnce { state.isPlayedOnce = true }
            if let tag = source.tag { state.tag = tag }
        }
    }

    /// Whether nobody plays it again once it was heard to its end, as a source has said.
    var isPlayedOnce: Bool { state.withLock { $0.isPlayedOnce } }

    /// The key under which the bytes are stored.
    var storageKey: CacheKey { state.withLock { $0.storageKey } ?? key }
}
