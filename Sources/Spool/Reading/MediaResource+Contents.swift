package import ByteRanges
public import Foundation
import SpoolStorage

/// What is kept of the media file: its origin is asked nothing.
extension MediaResource {
    /// What is kept of it; nil if nothing is.
    ///
    /// Under ``FreshnessPolicy/http``, of the variant that this source is handed; so a resolver is called, to know its
    /// credentials.
    ///
    /// - Throws: `CacheError`: `.storage` when the catalog can't be read, `.closed`; what the source's resolver throws.
    public func storedResource() async throws -> StoredResource? {
        try await store.resource(variantKey).map { StoredResource($0) }
    }

    /// Keeps what is stored from eviction, also across launches, until it is unpinned or removed.
    ///
    /// What lands later is kept, too. Under ``FreshnessPolicy/http`` the variants that are stored by now are pinned: those
    /// for the credentials among the source's header fields, or all if it has none there.
    ///
    /// - Throws: `CacheError`: `.notStored` when nothing of it is kept, `.storage`, `.closed`.
    public func pin() async throws { try await context.setPinned(true, key) }

    /// Lets what is stored, the same variants of it, be evicted again.
    ///
    /// - Throws: As ``pin()``.
    public func unpin() async throws { try await context.setPinned(false, key) }

    /// Removes what is kept, the same variants of it, pinned or not. A reader that is in it finishes from its open file
    /// or ends with `.resourceChanged`; one that opens later starts anew.
    ///
    /// - Returns: Whether anything was kept.
    /// - Throws: `CacheError`: `.storage` when the catalog can't be written, `.closed`.
    @discardableResult
    public func remove() async throws -> Bool { try await context.remove(key) }

    /// Copies it into a file, if it is complete; every byte is checked against its seal on the way.
    ///
    /// The file is whole or not there; one that is there is replaced. Under ``FreshnessPolicy/http`` it is the variant that
    /// this source is handed; so a resolver is called, to know its credentials.
    ///
    /// - Throws: `CacheError`: `.notStored`, `.incomplete` (the message names the first missing range), `.storage`,
    ///   `.closed`; what the source's resolver throws.
    public func export(to file: URL) async throws { try await store.export(variantKey, to: file) }

    /// Which bytes are kept: on disk, or about to be written there. Of what another process keeps, all that has landed.
    ///
    /// - Throws: As ``storedResource()``.
    package func keptRanges() async throws -> ByteRangeSet {
        let store = try await store
        // The process that has the directory keeps them, and may not have written them down yet.
        if store.readOnlyReason != nil { return try await storedRanges }
        return try await store.resource(variantKey).map { StoredResource($0).storedRanges } ?? ByteRangeSet()
    }

    private var context: CacheContext { get throws { try openResource.context } }

    private var store: Store { get async throws { try await context.opening.directory() } }

    private var variantKey: CacheKey {
        get async throws { try await openResource.variants.key(for: credentials) }
    }
}
