extension CacheCapacity {
    /// In bytes; nil: no limit.
    ///
    /// - Throws: ``CacheError`` with code `storage` when the volume can't be asked for its size, `invalidArgument` where there is none.
    func limit(in directory: CacheDirectory) throws -> Int64? {
        switch kind {
        case .bytes(let count): return count
        case .fraction(let fraction):
            let size = try directory.space().size
            return Int64(exactly: (Double(size) * fraction).rounded(.down)) ?? size
        case .unlimited: return nil
        case .remembered: return try directory.catalog.capacity()
        }
    }
}
