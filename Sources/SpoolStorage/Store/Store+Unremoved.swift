import Synchronization

/// Removal of media files, and the claims of those that can't be removed.
extension Store {
    /// Removes a file that no record names, then gives back its claim. If the file can't be removed, the claim stays.
    /// Blocks.
    func removeFile(_ identifier: GenerationIdentifier, claiming claim: Int64) {
        let error = directory.removeMedia(identifier)
        if let error, hasFile(identifier) {
            unremoved.withLock { $0.add(identifier, claim) }
            warnOnce(
                "removal", error,
                "\(error.message); the space of such files counts as used until they can be removed")
        } else {
            // A file that was never written proves nothing: removing what does not exist always works.
            if let error {
                report(.warning(error.message))
            } else if claim > 0 {
                unremoved.withLock { $0.noteRemoval() }
            }
            ledger.giveBack(claim)
        }
    }

    /// Whether a file may be there that holds what is claimed; not if a directory or a link stands in its place.
    private func hasFile(_ identifier: GenerationIdentifier) -> Bool {
        do throws(CacheError) {
            return try directory.bytes.open(identifier.hex, isWritable: false) != nil
        } catch {
            return !error.saysNoFile
        }
    }

    /// Tries again to remove some of the files that could not be removed. Blocks.
    ///
    /// - Returns: The number of bytes that were given back.
    func retryRemovals() -> Int64 {
        var freed: Int64 = 0
        for (identifier, claim) in unremoved.withLock({ $0.takeForRetry() }) {
            if directory.removeMedia(identifier) == nil {
                unremoved.withLock { $0.noteRemoval(claim: claim) }
                ledger.giveBack(claim)
                freed += claim
            } else {
                unremoved.withLock { $0.putBack(identifier, claim) }
            }
        }
        return freed
    }
}
