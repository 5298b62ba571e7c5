import Synchronization

/// Lets one at a time decide what becomes of a key, in the order in which they came; no thread is held by who waits.
///
/// Turns of different keys have nothing to do with each other. Whoever has one may hold it across slow I/O of its key,
/// and must not wait for another key's.
package final class KeyTurns<Key: Hashable & Sendable>: Sendable {
    /// Those who wait, by key; a key that is there is somebody's.
    private let waiting = Mutex<[Key: [CheckedContinuation<Void, Never>]]>([:])

    /// Turns that nobody has.
    package init() {}

    /// Runs `body` when it is its turn.
    package func run<R: ~Copyable, Failure: Error>(
        _ key: Key, _ body: () async throws(Failure) -> R
    ) async throws(Failure) -> R {
        await take(key)
        defer { end(key) }
        return try await body()
    }

    /// Waits for the turn; to be ended by ``end(_:)``.
    private func take(_ key: Key) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key, default: []].append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    /// Takes the turn if nobody has it; to be ended by ``end(_:)``.
    func tryTake(_ key: Key) -> Bool {
        waiting.withLock { waiting in
            guard waiting[key] == nil else { return false }
            waiting[key] = []
            return true
        }
    }

    /// How many wait for a key's turn, beside who has it.
    package func waiterCount(_ key: Key) -> Int { waiting.withLock { $0[key]?.count ?? 0 } }

    /// Hands the turn to who came next.
    func end(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard var queue = waiting[key] else { return nil }
            guard !queue.isEmpty else {
                waiting[key] = nil
                return nil
            }
            let next = queue.removeFirst()
            waiting[key] = queue
            return next
        }
        next?.resume()
    }
}
