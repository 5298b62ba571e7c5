import Synchronization

/// The tokens that clients have used.
final class UsedTokens: Sendable {
    private let tokens = Mutex<Set<String>>([])

    /// Adds a token. Returns `false` if it has been used before.
    func insert(_ token: String) -> Bool { tokens.withLock { $0.insert(token).inserted } }
}
