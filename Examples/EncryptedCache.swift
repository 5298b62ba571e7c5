import SpoolAVFoundation

/// A cache that only who has the key can read; what was stored before there was a key gets it.
func encryptedCache(in directory: URL, key: EncryptionKey) async throws -> MediaCache {
    do {
        _ = try await MediaCache.inspect(directory)
        try await MediaCache.rekey(directory, from: nil, to: key)
    } catch let error as CacheError where error.code == .notStored || error.code == .keyRequired {
        // There is none yet, or it has its key.
    }
    var configuration = MediaCache.Configuration()
    configuration.encryptionKey = key
    return MediaCache(directory: directory, configuration: configuration)
}
