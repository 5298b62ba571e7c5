import Foundation
import SpoolAVFoundation

/// Returns a cache that stores its media on a different volume than its catalog, such as a memory card.
func cache(withMediaOn card: URL, in directory: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.byteStore = FileByteStore(directory: card.appending(path: "media"))
    return MediaCache(directory: directory, configuration: configuration)
}

/// Returns a cache without files. It uses up to 128 MiB of memory, and exists while it is referenced.
func privateCache() -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.capacity = .bytes(128 << 20)
    return MediaCache.inMemory(configuration: configuration)
}
