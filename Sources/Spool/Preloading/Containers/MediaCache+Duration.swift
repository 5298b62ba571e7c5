import Foundation
package import SpoolStorage

extension MediaCache {
    /// Returns the duration of a stored file according to the headers of its container, in seconds.
    ///
    /// - Returns: `nil` if the container is unknown or does not specify a duration, or if its headers are not stored.
    /// - Throws: `CacheError`: `.storage` if the catalog or the file can't be read, `.closed`.
    package func duration(of key: CacheKey) async throws -> Double? {
        guard let lease = try await store.lease(key) else { return nil }
        defer { lease.end() }
        let generation = lease.generation
        guard let length = generation.description.length, length > 0 else { return nil }
        var search = StartRanges(length: length)
        while case .read(let part, _) = search.next() {
            let part = part.clamped(to: 0..<length)
            guard !part.isEmpty, generation.storedRanges.contains(part) else { return nil }
            let bytes = try await context.executor.run(in: .maintenance) {
                var bytes = Data()
                while Int64(bytes.count) < Int64(part.count) {
                    bytes += try generation.read(part.lowerBound + Int64(bytes.count)..<part.upperBound)
                }
                return bytes
            }
            search.take(bytes)
        }
        guard case .found(let plan) = search.next() else { return nil }
        return plan.duration
    }
}
