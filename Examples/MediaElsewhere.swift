import Foundation
import SpoolAVFoundation

/// A cache whose media lies on another volume than its catalog, such as a card.
func cache(withMediaOn card: URL, in directory: URL) -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.byteStore = FileByteStore(directory: card.appending(path: "media"))
    return MediaCache(directory: directory, configuration: configuration)
}

/// A cache that leaves nothing on the disk: 128 MiB of memory, for as long as it is referenced.
func privateCache() -> MediaCache {
    var configuration = MediaCache.Configuration()
    configuration.capacity = .bytes(128 << 20)
    return MediaCache.inMemory(configuration: configuration)
}
