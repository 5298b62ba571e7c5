import Synchronization

extension MediaResource {
    /// A stream of the states of the stored bytes: the current state first, then the newest state after each change.
    ///
    /// No request is sent to the origin. States between two reads of the stream are skipped, so a slow view does not
    /// cause a backlog. Each call returns a separate stream, which keeps the resource open until it is released, and
    /// ends when the cache is closed. Iterate over it in one task.
    ///
    /// ```swift
    /// for await state in media.states { bar.progress = state.fractionCompleted ?? 0 }
    /// ```
    public var states: AsyncStream<ResourceState> {
        let course = StateObserver(of: self)
        return AsyncStream { await course.next() }
    }
}

/// One observer of the states of a resource.
private final class StateObserver: Sendable {
    private struct Seen {
        var version: UInt64
        var state: ResourceState
    }

    private let media: MediaResource
    private let seen = Mutex<Seen?>(nil)

    init(of media: MediaResource) { self.media = media }

    /// Returns the next state that differs from the previous one; `nil` at the end.
    func next() async -> ResourceState? {
        // This throws if the cache is closed or the task is cancelled, so there is nothing more to show.
        guard let resource = try? await media.opened() else { return nil }
        while true {
            let previous = seen.withLock { $0 }
            if let previous, !(await resource.changes.wait(beyond: previous.version)) { return nil }
            let version = resource.changes.version
            let state = resource.observableState
            seen.withLock { $0 = Seen(version: version, state: state) }
            if state != previous?.state { return state }
        }
    }
}
