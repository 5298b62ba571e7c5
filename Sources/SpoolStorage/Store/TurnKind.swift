import Synchronization

/// The kinds of turns, in the order in which a task takes them.
package enum TurnKind: Int, Sendable, CaseIterable {
    /// The turn for rewriting a large manifest.
    case manifest
    /// The turn for evaluating the responses of one resource.
    case response
    /// The turn for choosing the key of a new variant of a resource.
    case variant
    /// The turn for the files of one key, or for eviction.
    case file
    /// The turn for changing the catalog.
    case catalog

    /// Returns whether a task that has a turn of this kind may also take a turn of kind `other`.
    package func mayTake(_ other: TurnKind) -> Bool { other.rawValue > rawValue }
}

#if DEBUG
/// The kinds of the turns that tasks currently have. A child task does not inherit the turns of its parent.
package enum HeldTurns {
    private static let tasks = Mutex<[Int: [TurnKind]]>([:])

    /// The number of the current task, which is unique while the task runs; `nil` outside of tasks.
    private static var task: Int? { withUnsafeCurrentTask { $0?.hashValue } }

    /// The kinds of the turns that the current task has, in order.
    package static var kinds: [TurnKind] { task.flatMap { task in tasks.withLock { $0[task] } } ?? [] }

    /// Asserts that the current task may wait for a turn.
    package static func check(_ kind: TurnKind) {
        for held in kinds where !held.mayTake(kind) {
            assertionFailure("a task that has a turn of kind \(held) waits for one of kind \(kind)")
        }
    }

    package static func add(_ kind: TurnKind) {
        guard let task else { return }
        tasks.withLock { $0[task, default: []].append(kind) }
    }

    package static func remove(_ kind: TurnKind) {
        guard let task else { return }
        tasks.withLock { tasks in
            guard var kinds = tasks[task], let index = kinds.lastIndex(of: kind) else { return }
            kinds.remove(at: index)
            tasks[task] = kinds.isEmpty ? nil : kinds
        }
    }
}
#endif
