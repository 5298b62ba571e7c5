public import Foundation
public import SpoolStorage

extension MediaCache {
    /// Changes the key of the closed cache in a directory, or encrypts or decrypts the cache.
    ///
    /// Copies all stored media, and replaces it with the copy at the end. The copy needs about as much free space as
    /// the cache uses, and takes as long as copying the files does. Nothing is fetched. Until the end, the cache is
    /// unchanged, so you can cancel the task at any time. If the process is killed, the incomplete copy is removed when
    /// the cache is next opened.
    ///
    /// The file system may leave the contents of the previous files on the disk until they are overwritten.
    ///
    /// - Parameters:
    ///   - directory: The cache's directory.
    ///   - previous: The previous key; `nil` for an unencrypted cache.
    ///   - key: The new key; `nil` for an unencrypted cache.
    ///   - byteStore: The storage of media bytes; `nil` for files in the directory.
    /// - Throws: `CancellationError`, or `CacheError`. In both cases, the cache keeps its previous key.
    ///   - `.notStored` if there is no cache
    ///   - `.directoryInUse`
    ///   - `.keyRequired` or `.wrongEncryptionKey` for the previous key
    ///   - `.invalidArgument` for an invalid key, or if both keys are `nil`
    ///   - `.storage`, including if there is too little free space
    public static func rekey(
        _ directory: URL, from previous: EncryptionKey?, to key: EncryptionKey?, byteStore: (any ByteStore)? = nil
    ) async throws {
        try await rekey(directory, from: previous, to: key, byteStore: byteStore) { _ in }
    }

    /// Changes the key of a closed cache; see ``rekey(_:from:to:byteStore:)``.
    ///
    /// - Parameter willCopy: A function that is called before anything is copied.
    @discardableResult
    package static func rekey(
        _ directory: URL, from previous: EncryptionKey?, to key: EncryptionKey?, byteStore: (any ByteStore)? = nil,
        willCopy: @Sendable (RekeyingPlan) -> Void
    ) async throws -> RekeyingPlan {
        try await Store.rekey(
            path: directory.path, from: previous, to: key, byteStore: byteStore,
            clock: CacheClock(clock: ContinuousClock()), willCopy: willCopy)
    }
}
