import Foundation
import Spool
import SpoolTesting

/// A cache in a separate directory.
final class TestCache: Sendable {
    private let folder: ScratchDirectory
    let cache: MediaCache

    init(_ upstream: any Upstream) throws {
        folder = try ScratchDirectory()
        cache = MediaCache(directory: URL(fileURLWithPath: folder.path), upstream: upstream)
    }

    /// Reads bytes from a source with a new reader.
    func read(_ source: MediaSource, _ range: Range<Int64>) async throws -> Data {
        var data = Data()
        let media = cache.media(for: source)
        for try await chunk in media.reader(in: range) { data.append(chunk.data) }
        return data
    }

    func close() async { await cache.close() }
}
