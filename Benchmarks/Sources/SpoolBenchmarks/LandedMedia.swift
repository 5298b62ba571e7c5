import Foundation
import Spool

/// One resource that has landed whole, in a cache of its own, and the file that the cache keeps it in.
struct LandedMedia: Sendable {
    let length: Int64
    let cache: MediaCache
    let media: MediaResource
    /// The cache's media file: a plain copy of the resource, unless the cache is encrypted.
    let file: URL
    private let folder: TemporaryFolder

    init(_ name: String, length: Int64, _ configuration: MediaCache.Configuration = .unlimited) async throws {
        self.length = length
        folder = try TemporaryFolder(name)
        cache = MediaCache(directory: folder.url, upstream: MemoryOrigin(length: length), configuration: configuration)
        try await cache.open()
        media = cache.media(for: try Self.url("media"))
        for try await chunk in media.reader() { blackHole(chunk) }
        file = try storedFile(in: folder.url)
    }

    /// The address of a resource; the origin has one at every address.
    static func url(_ name: String) throws -> URL {
        guard let url = URL(string: "http://localhost/\(name)") else {
            throw BenchmarkError("“\(name)” makes no address")
        }
        return url
    }
}

/// The media file of a cache that holds one resource; an empty one may lie beside it, ready for the next.
private func storedFile(in directory: URL) throws -> URL {
    let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: [.fileSizeKey])
    while let file = files?.nextObject() as? URL {
        guard file.pathExtension == "media" else { continue }
        if try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0 > 0 { return file }
    }
    throw BenchmarkError("the cache keeps no media file")
}
