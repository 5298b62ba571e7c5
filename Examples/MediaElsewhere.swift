import Foundation
import SpoolAVFoundation

/// Returns a cache that stores its media on a separate volume, such as a memory card. The catalog stays in `directory`.
func cache(withMediaOn card: URL, in directory: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.byteStore = FileByteStore(directory: card.appending(path: "media"))
    return MediaCache(directory: directory, configuration: configuration)
}

/// Returns an in-memory cache without files. It uses up to 128 MiB, and exists for as long as it is referenced.
func privateCache() -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.capacity = .bytes(128 << 20)
    return MediaCache.inMemory(configuration: configuration)
}
