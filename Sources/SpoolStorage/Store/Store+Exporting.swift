import ByteRanges
package import Foundation

extension Store {
    /// Copies a complete resource into a file; every byte is checked against its seal on the way.
    ///
    /// It is written beside the file first, under a name of its own, then renamed: it is whole or not there. A file that
    /// is there is replaced and keeps its mode.
    ///
    /// - Throws: ``CacheError``: `notStored`; `incomplete` (the message names the first missing range); `storage` when
    ///   the file can't be written, as when there is a directory.
    package func export(_ key: CacheKey, to file: URL) async throws {
        // Its bytes are wanted: it offers none to eviction.
        let user = ExportUser()
        guard let lease = try await lease(key, user: user) else {
            throw CacheError(.notStored, "nothing is kept under the key \(key)", key: key)
        }
        defer { lease.end() }
        let generation = lease.generation
        guard let length = generation.description.length, generation.landed.contains(0..<length) || length == 0 else {
            throw Self.incomplete(generation)
        }
        let target = try await executor.run(in: .maintenance) { try ExportFile(replacing: file.path) }
        do {
            var offset: Int64 = 0
            while offset < length {
                let start = offset
                offset = try await executor.run(in: .maintenance) {
                    try self.checkOpen()
                    let bytes = try generation.read(start..<min(length, start + 1 << 20))
                    try target.append(bytes)
                    return start + Int64(bytes.count)
                }
            }
            try await executor.run(in: .maintenance) { try target.finish() }
        } catch is MissingBytes {
            target.discard()
            throw Self.incomplete(generation)
        } catch {
            target.discard()
            throw error
        }
    }

    private static func incomplete(_ generation: Generation) -> CacheError {
        guard let length = generation.description.length else {
            return CacheError(
                .incomplete, "\(generation.url) is not complete: its length is not known", key: generation.key)
        }
        let hole = generation.landed.firstHole(in: 0..<length)
        let missing = hole.map { "it lacks \($0.inWords)" } ?? "stored bytes were damaged, and fetched again since"
        return CacheError(
            .incomplete, "\(generation.url) is not complete: \(missing)", key: generation.key, range: hole)
    }
}

/// Wants all of a generation while it is copied.
private final class ExportUser: GenerationUser {
    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>] { [] }
    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation) {}
    func isFilling(_ generation: Generation) -> Bool { false }
    func invalidated(_ ranges: [Range<Int64>], of generation: Generation) {}
    func retired(_ generation: Generation) {}
}
