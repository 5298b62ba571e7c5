import Synchronization

extension MediaResource {
    /// What is there of the file: its present state at once, then the newest one whenever it has changed.
    ///
    /// The origin is not asked. However fast bytes land, whoever takes a state gets the present one: states in between
    /// are left out, so a slow view costs nothing. Each call gives a stream of its own, which keeps the resource open
    /// until it is let go of, and ends when the cache is closed; one task iterates over it.
    ///
    /// ```swift
    /// for await state in media.states { bar.progress = state.fractionCompleted ?? 0 }
    /// ```
    public var states: AsyncStream<ResourceState> {
        let course = StateCourse(of: self)
        return AsyncStream { await course.next() }
    }
}

/// How far one observer has come in the states of a resource.
private final class StateCourse: Sendable {
    private struct Seen {
        var version: UInt64
        var state: ResourceState
    }

    private let media: MediaResource
    private let seen = Mutex<Seen?>(nil)

    init(of media: MediaResource) { self.media = media }

    /// The next state that is not the one before; nil at the end.
    func next() async -> ResourceState? {
        // It throws for a closed cache or a cancelled task: there is nothing to show any more.
        guard let resource = try? await media.opened() else { return nil }
        while true {
            let former = seen.withLock { $0 }
            if let former, !(await resource.changes.wait(beyond: former.version)) { return nil }
            let version = resource.changes.version
            let state = resource.observableState
            seen.withLock { $0 = Seen(version: version, state: state) }
            if state != former?.state { return state }
        }
    }
}
