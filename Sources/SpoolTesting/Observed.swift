import Observation

/// Waits until something that can be observed holds, or the task is cancelled.
@MainActor package func observed(_ condition: () -> Bool) async {
    while !condition(), !Task.isCancelled {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let holds = withObservationTracking(condition) { continuation.finish() }
        if !holds { for await _ in stream {} }
        await Task.yield()
    }
}
