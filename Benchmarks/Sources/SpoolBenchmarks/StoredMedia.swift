import Foundation
import Spool

/// A completely stored resource in its own cache, and its media file.
struct StoredMedia: Sendable {
    let length: Int64
    let cache: MediaCache
    let media: MediaResource
    /// The media file of the cache. It is an exact copy of the resource unless the cache is encrypted.
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

    /// Returns the URL of a resource. The origin has a resource at every URL.
    static func url(_ name: String) throws -> URL {
        guard let url = URL(string: "http://localhost/\(name)") else {
            throw BenchmarkError("“\(name)” is not valid in a URL")
        }
        return url
    }
}

/// Returns the media file of a cache with one resource. There may also be an empty file for the next resource.
private func storedFile(in directory: URL) throws -> URL {
    let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: [.fileSizeKey])
    while let file = files?.nextObject() as? URL {
        guard file.pathExtension == "media" else { continue }
        if try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0 > 0 { return file }
    }
    throw BenchmarkError("the cache does not contain a media file")
}
