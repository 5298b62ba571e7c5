import Synchronization

/// The memory that manifests may occupy at the same time.
///
/// A manifest is in memory while it is received, rewritten and sent. With a slow origin or a slow client, this can take
/// minutes.
package final class ManifestMemory: Sendable {
    /// The default of ``limit``, in bytes.
    package static let defaultLimit = 256 << 20
    /// The maximum size of a small manifest, in bytes.
    private static let smallBytes = 256 << 10

    /// The maximum number of bytes.
    package let limit: Int
    private let used = Mutex(0)

    package init(limit: Int = ManifestMemory.defaultLimit) { self.limit = limit }

    /// The number of bytes that manifests occupy now.
    package var usedBytes: Int { used.withLock { $0 } }

    /// The memory for one manifest. The memory is returned when the last response that uses the manifest has been sent.
    package final class Share: Sendable {
        private let memory: ManifestMemory
        private let count = Mutex(0)

        package init(of memory: ManifestMemory) { self.memory = memory }

        deinit {
            let bytes = count.withLock { $0 }
            memory.used.withLock { $0 -= bytes }
        }

        /// Changes the size of the share, in bytes. Small manifests always get memory, so that clients of large ones
        /// can't prevent the playback of all other streams.
        ///
        /// - Returns: `false` if too little memory is left. In that case, the size does not change.
        package func resizeIfPossible(to bytes: Int) -> Bool {
            count.withLock { count in
                let isAllowed = memory.used.withLock { used in
                    guard bytes <= max(count, ManifestMemory.smallBytes) || used - count + bytes <= memory.limit else {
                        return false
                    }
                    used += bytes - count
                    return true
                }
                if isAllowed { count = bytes }
                return isAllowed
            }
        }
    }
}
