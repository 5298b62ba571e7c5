import HTTPRanges
import HTTPTypes
import SpoolStorage
import Synchronization

/// The variants of one resource: the responses from its origin to requests with different header fields.
///
/// Under ``FreshnessPolicy/http``, an origin may send different bytes depending on the credentials (RFC 9111 §3.5) and
/// on the fields that `Vary` lists (§4.1). The first stored variant has the resource's key. The keys of the other
/// variants are derived from this key, and ``StoredFreshness/variantOf`` contains the keys from which they were
/// derived.
struct ResourceVariants {
    let resource: OpenResource

    private var key: CacheKey { resource.key }
    private var context: CacheContext { resource.context }

    /// Returns the key under which the variant for a request with `credentials` is, or would be, stored.
    func key(for credentials: SourceCredentials) async throws -> CacheKey {
        guard context.configuration.freshness == .http else { return key }
        return try await variant(for: credentials, requestedWith: try await headerFields(of: credentials)).key
    }

    /// Returns the key of the variant, and the keys from which it was derived.
    private func variant(
        for credentials: SourceCredentials, requestedWith fields: HTTPFields
    ) async throws -> (key: CacheKey, of: [CacheKey]) {
        let everyone = credentials.source.key(by: context.configuration.keyPolicy)
        // If a resolver supplies the credentials, the key was derived without them.
        let own = credentials.source.resolver == nil ? key : key.with(credentialsIn: fields)
        let store = try await context.store
        // A variant that is being started also has this key, and will replace the stored variant.
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
        return try await resource.unlessClosed { try await credentials.resolved().request.headerFields }
    }

    /// Returns whether the stored version can be opened only after the source's resolver has returned.
    func waitsForResolver(of credentials: SourceCredentials) -> Bool {
        context.configuration.freshness == .http && credentials.source.isResolved && !resource.isLoaded
    }

    /// Returns a lease on the stored variant, or `nil` if no usable variant is stored.
    func lease(for credentials: SourceCredentials) async throws -> Lease? {
        if let separate = resource.separate {
            guard let version = separate.beside else { return nil }
            resource.usage.setStorageKey(version.key)
            return try await context.store.leaseOpen(version.key, user: resource) { $0 === version }
        }
        for _ in 0..<3 {
            let key = try await key(for: credentials)
            let lease = try await context.store.lease(key, user: resource)
            resource.usage.setStorageKey(key)
            guard let lease else { return nil }
            if lease.generation.storedFreshness?.exclusion != nil {
                lease.end()
                return nil
            }
            if try await isVariant(lease.generation, for: credentials) { return lease }
            // Another variant has been stored under this key since the check of `Vary`.
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

    /// Starts a version under the key of its variant.
    ///
    /// - Parameter fields: The source's header fields with which the response was requested. They select the variant,
    ///   even if the credentials have expired since. The source's resolver is not called, because it may never return.
    func begin(
        _ description: GenerationDescription, for credentials: SourceCredentials, requestedWith fields: HTTPFields,
        isKept: Bool, replacing previous: Generation?
    ) async throws -> Lease {
        let store = try await context.store
        guard context.configuration.freshness == .http else {
            return try begin(key, description, of: [], isKept: isKept, in: store)
        }
        // If two variants of a resource start at the same time, they must not be mistaken for each other.
        return try await context.variants.runUnlessCancelled(resource.key) {
            var (key, isKept, description) = (key, isKept, description)
            var baseKeys: [CacheKey] = []
            do {
                let variant = try await variant(for: credentials, requestedWith: fields)
                key = variant.key
                baseKeys = variant.of
                if !variant.of.isEmpty, var freshness = StoredFreshness(encoded: description.fields) {
                    freshness.variantOf = variant.of.map(\.hash)
                    description.fields = freshness.encoded
                }
            } catch let error as CacheError where error.isStorageError {
                // It is not known which variant is stored, so this variant must not replace it.
                isKept = false
                resource.send(.notCached(cause: error))
            }
            resource.usage.setStorageKey(key)
            // If another resource is receiving the same version for requests with different fields, both resources fill
            // that version. A second copy would replace it while readers use it.
            let version = ResourceVersion(encoded: description.version)
            if isKept, let version, version.validator.isStrong,
                let lease = store.leaseOpen(
                    key, user: resource,
                    where: {
                        $0 !== previous && $0.resourceVersion.validator.stronglyMatches(version.validator)
                            && Self.isPossible(description.length, of: $0)
                    })
            {
                if let length = description.length, lease.generation.description.length == nil {
                    lease.generation.setLength(length)
                }
                return lease
            }
            // Nothing proves that this is the version that another resource is fetching for its readers, so it must not
            // replace that version.
            if isKept, let version,
                store.isFilled(key, besides: resource, where: { Self.isUnproven(version, against: $0) })
            {
                isKept = false
            }
            return try begin(key, description, of: baseKeys, isKept: isKept && resource.separate == nil, in: store)
        }
    }

    private static func isUnproven(_ version: ResourceVersion, against generation: Generation) -> Bool {
        let placement = PartialResponse.BodyPlacement(offset: 0, end: version.length, version: version)
        let end = generation.storedRanges.bounds?.upperBound ?? 0
        let stored = StoredVersion(version: generation.resourceVersion, storedEnd: end)
        return placement.isUnproven(against: stored, rule: .strong)
    }

    /// Returns whether a version may have this length. The length is `nil` if the response does not contain the total
    /// length (RFC 9110 §14.4).
    private static func isPossible(_ length: Int64?, of generation: Generation) -> Bool {
        guard let length else { return true }
        if let known = generation.description.length { return known == length }
        return generation.storedRanges.bounds?.upperBound ?? 0 <= length
    }

    private func begin(
        _ key: CacheKey, _ description: GenerationDescription, of baseKeys: [CacheKey], isKept: Bool, in store: Store
    ) throws -> Lease {
        try store.begin(
            key, url: resource.redactedURL, description: description, in: resource.usage.presentation,
            variantOf: baseKeys, isKept: isKept, user: resource)
    }
}
