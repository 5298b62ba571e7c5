#if Proxy
import SpoolStorage
import Synchronization

/// The versions that are for one request each and have been sent to it: who has waited beside it gets a response of his own.
final class TakenVersions: Sendable {
    private let known = Mutex<Set<GenerationIdentifier>>([])
    private static let limit = 4096

    /// Takes a version; false where it has been taken. What is forgotten, after some thousands, has long gone.
    func insert(_ version: GenerationIdentifier) -> Bool {
        known.withLock { known in
            if known.count >= Self.limit { known = [] }
            return known.insert(version).inserted
        }
    }
}
#endif
