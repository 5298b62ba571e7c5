import Spool

extension CacheOptions {
    func setPinned(_ isPinned: Bool, _ address: MediaAddress) async throws {
        let media = try await withExistingCache { cache in
            guard try await cache.contents(of: address.key) != nil else { throw address.notStored }
            try await cache.setPinned(isPinned, key: address.key)
            return try await cache.contents(of: address.key)
        }
        guard case let media?? = media else { throw address.notStored }
        if json { try Output.json(MediaReport(media)) }
    }
}
