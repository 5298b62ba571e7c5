public import Foundation
public import SpoolStorage

extension MediaCache {
    /// Gives the cache in a directory another key; makes a plain one encrypted, or an encrypted one plain.
    ///
    /// For a moment at which nobody has the cache open, such as an app's launch. It takes as long as it takes to rewrite the
    /// catalog, some milliseconds for a few thousand media files; from then on only the new key opens the cache. The files
    /// are enciphered anew in the background when the cache is open, also over several launches: what is being enciphered
    /// plays meanwhile, and nothing is fetched again. The disk must have room for the largest of them once more, which for
    /// that time is not counted by the capacity. ``finishRekeying(progress:)`` waits for it.
    ///
    /// What the files of a plain cache occupied is given back to the file system, which may leave its content on the disk
    /// until something else takes the place.
    ///
    /// - Parameters:
    ///   - directory: The cache's directory.
    ///   - former: The key that it has; nil for a plain one.
    ///   - key: The key that it is to have; nil: none.
    ///   - byteStore: Where its media is, if that is not in files of the directory: a change of keys that is under way is
    ///     finished first.
    /// - Throws: `CacheError`: `.notStored` when there is no cache; `.keyRequired`, `.keyRefused` for the former key;
    ///   `.directoryInUse`; `.invalidArgument` for a key that is none, or where a plain cache is to stay plain; `.storage`.
    ///   Then it has the former key.
    public static func rekey(
        _ directory: URL, from former: EncryptionKey?, to key: EncryptionKey?, byteStore: (any ByteStore)? = nil
    ) async throws {
        try await Store.beginRekeying(
            path: directory.path, from: former, to: key, byteStore: byteStore,
            clock: CacheClock(clock: ContinuousClock()))
    }

    /// How many media files, and bytes of them, are still enciphered, or plain, as before the cache was given its key.
    package func rekeyingLeft() async throws -> (resources: Int, bytes: Int64) {
        try await store.rekeyingLeft()
    }

    /// Waits until all that is stored, and that nobody has open, is enciphered with the key that the cache was given.
    ///
    /// - Parameter progress: Called with how many media files, and bytes of them, are left; from any thread.
    /// - Throws: `CacheError`: `.storage` where the disk refuses; `.closed`. It is gone on with at the next opening.
    public func finishRekeying(
        progress: @escaping @Sendable (_ resources: Int, _ bytes: Int64) -> Void = { _, _ in }
    ) async throws {
        try await store.finishRekeying(progress: progress)
    }
}
