package import ByteRanges
public import Foundation
import SpoolStorage

/// The stored bytes of the resource. No request is sent to its origin.
extension MediaResource {
    /// Returns the stored part of the resource; `nil` if nothing is stored.
    ///
    /// With ``FreshnessPolicy/http``, this is the variant that the source receives. The source's resolver is called for
    /// the credentials.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`. Errors from the source's resolver
    ///   are also thrown.
    public func storedResource() async throws -> StoredResource? {
        try await store.resource(variantKey).map { StoredResource($0) }
    }

    /// Removes the stored variants of the resource; see ``MediaCache/remove(_:)``.
    @discardableResult
    package func remove() async throws -> Bool { try await openResource.context.remove(key) }

    /// Copies the resource into a file if it is complete. Every block is checked against its checksum.
    ///
    /// The file is either complete or absent. An existing file is replaced. With ``FreshnessPolicy/http``, the variant
    /// that the source receives is copied. The source's resolver is called for the credentials.
    ///
    /// - Throws: `CacheError`: `.notStored`, `.incomplete` with the first missing range, `.storage`, `.closed`. Errors
    ///   from the source's resolver are also thrown.
    public func export(to file: URL) async throws { try await store.export(variantKey, to: file) }

    /// Passes the bytes of the resource to `write` if it is complete; see ``export(to:)``.
    package func export(writing write: (Data) async throws -> Void) async throws {
        try await store.export(variantKey, writing: write)
    }

    /// Returns the ranges that are on disk or about to be written there.
    ///
    /// - Throws: The same errors as ``storedResource()``.
    package func keptRanges() async throws -> ByteRangeSet {
        try await store.resource(variantKey).map { StoredResource($0).storedRanges } ?? ByteRangeSet()
    }

    var store: Store { get async throws { try await openResource.context.opening.directory() } }

    var variantKey: CacheKey {
        get async throws { try await openResource.variants.key(for: credentials) }
    }
}
