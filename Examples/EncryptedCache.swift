import SpoolAVFoundation

/// Returns an encrypted cache. Media that was stored without a key is encrypted first.
func encryptedCache(in directory: URL, key: EncryptionKey) async throws -> MediaCache {
    do {
        _ = try await MediaCache.inspect(directory)
        try await MediaCache.rekey(directory, from: nil, to: key)
    } catch let error as CacheError where error.code == .notStored || error.code == .keyRequired {
        // There is no cache yet, or it is already encrypted.
    }
    var configuration = MediaCache.Configuration()
    configuration.encryptionKey = key
    return MediaCache(directory: directory, configuration: configuration)
}
