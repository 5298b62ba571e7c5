package import Foundation
import HTTPRanges
package import HTTPTypes
package import SpoolStorage

/// Operations on stored resources by their keys, for pages and commands that show and change the contents of a cache.
extension MediaCache {
    /// Returns the details of a stored resource; `nil` if nothing is stored under the key.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    package func details(of key: CacheKey) async throws -> StoredDetails? {
        guard let record = try await store.resource(key) else { return nil }
        let response = record.description.map { StoredResponse($0, isStored: true) }
        let stored = record.description.flatMap { StoredFreshness(encoded: $0.fields) }
        return StoredDetails(
            resource: StoredResource(record), fields: response?.fields ?? HTTPFields(),
            freshness: freshness(of: stored), isURLComplete: isURLComplete(record, stored))
    }

    private func freshness(of stored: StoredFreshness?) -> StoredDetails.Freshness {
        switch freshness {
        case .immutable: .fresh(until: nil)
        case .revalidate: .stale(since: nil)
        case .http:
            stored.map { stored in
                let date = Date(timeIntervalSince1970: Double(stored.freshUntil))
                return stored.isFresh(at: context.clock.secondsSince1970()) ? .fresh(until: date) : .stale(since: date)
            } ?? .unknown
        }
    }

    /// Returns whether the record contains the whole URL. If so, the URL's key is the resource's key, or the key of a
    /// resource of which this resource is a variant.
    private func isURLComplete(_ record: StoredResourceRecord, _ stored: StoredFreshness?) -> Bool {
        guard let url = URL(string: record.url) else { return false }
        let key = key(for: url)
        return key == record.key || stored?.variantOf?.contains(key.hash) == true
    }

    /// Returns the stored files that belong to a stream.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    package func parts(of presentation: CacheKey) async throws -> [StoredResource] {
        try await store.resources(partOf: presentation).map { StoredResource($0) }
    }

    /// Passes the bytes of a complete resource to `write`, in order. Every block is checked against its checksum first.
    ///
    /// - Parameter range: The range to pass. The default, `nil`, means all bytes.
    /// - Throws: `CacheError`: `.notStored`, `.incomplete` with the first missing range, `.storage`, `.closed`. Errors
    ///   from `write` are also thrown.
    package func export(
        _ key: CacheKey, range: Range<Int64>? = nil, writing write: (Data) async throws -> Void
    ) async throws {
        try await store.export(key, range: range, writing: write)
    }

    /// Returns the keys of all resources whose preloads store the resource with this key.
    ///
    /// These are the given key, the key of the resource's stream, and the keys of the resources of which the given
    /// resource is a variant.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    package func preloadKeys(for key: CacheKey) async throws -> Set<CacheKey> {
        try await context.preloadKeys(for: key)
    }

    /// Removes all resources that a selection includes, pinned or not. If it includes a stream, the parts of the stream
    /// are also removed.
    ///
    /// - Parameter prepare: A function that is called before anything is removed, with the keys of the resources whose
    ///   preloads would store the removed resources again. Bytes that are stored while it runs are removed as well.
    /// - Returns: The removed resources, and the errors of resources that could not be removed.
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    package func purge(
        _ selection: PurgeSelection, preparing prepare: ((Set<CacheKey>) async -> Void)? = nil
    ) async throws -> (removed: [StoredResource], failures: [CacheError]) {
        try await context.purge(selection, preparing: prepare)
    }
}

/// A stored resource, and details that ``StoredResource`` does not contain.
package struct StoredDetails: Sendable {
    /// Whether a stored response may be used without a request to the origin.
    package enum Freshness: Sendable, Hashable {
        /// The response is fresh until this date, or always if the date is `nil`.
        case fresh(until: Date?)
        /// The response has been stale since this date. The date is `nil` if every use has to be validated.
        case stale(since: Date?)
        case unknown
    }

    package var resource: StoredResource
    /// The stored header fields of the response. Some of them may contain secrets, such as a signed URL.
    package var fields: HTTPFields
    package var freshness: Freshness
    /// Whether the URL without its query identifies the resource.
    package var isURLComplete: Bool
}

extension PurgeSelection {
    /// Returns the stored resources that the selection includes, with the parts of the selected streams.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    package func resources(in cache: MediaCache) async throws -> [StoredResource] {
        try await cache.context.records(in: self).map { StoredResource($0) }
    }
}
