extension CacheCapacity {
    /// In bytes; nil: no limit.
    ///
    /// - Throws: ``CacheError`` with code `storage` when the volume can't be asked for its size.
    func limit(in directory: CacheDirectory) throws -> Int64? {
        switch kind {
        case .bytes(let count): return count
        case .fraction(let fraction):
            let size = try directory.fileSystem.volumeSpace(at: directory.path).size
            return Int64(exactly: (Double(size) * fraction).rounded(.down)) ?? size
        case .unlimited: return nil
        case .remembered: return try directory.catalog.capacity()
        }
    }
}
