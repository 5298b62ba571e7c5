import Spool

extension StoredResource {
    /// How much is there, in one short column: `complete`, `42 %`, or bytes where the length is not known.
    var share: String {
        if isComplete { return "complete" }
        guard let length, length > 0 else { return ByteCount(bytes: storedByteCount).text }
        return "\(min(99, storedByteCount * 100 / length)) %"
    }
}
