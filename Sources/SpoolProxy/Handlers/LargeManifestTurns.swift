#if Proxy
import SpoolStorage
import Synchronization

/// The turns for rewriting large manifests. At most two large manifests are rewritten at the same time.
///
/// Rewriting a manifest requires many times its size in memory. A client that disconnects before its turn does not
/// cause any work.
final class LargeManifestTurns: Sendable {
    private static let turnCount = 2

    private let turns = KeyTurns<Int>(.manifest)
    private let count = Atomic<Int>(0)

    /// Waits for a turn, and runs `body`.
    ///
    /// - Throws: `CancellationError` if the task was cancelled before its turn. Also throws the errors of `body`.
    func run<R>(_ body: () async throws -> R) async throws -> R {
        let turn = count.wrappingAdd(1, ordering: .relaxed).newValue % Self.turnCount
        return try await turns.runUnlessCancelled(turn, body)
    }
}
#endif
