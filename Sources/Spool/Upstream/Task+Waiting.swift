extension Task where Failure: Sendable {
    /// Waits until the task ends or the waiting task is cancelled. `Task.value` does not respond to the cancellation of
    /// the waiting task.
    ///
    /// - Throws: `CancellationError` when the waiting task is cancelled.
    func waitForEnd(on executor: any TaskExecutor) async throws {
        let (end, ended) = AsyncStream.makeStream(of: Void.self)
        Task<Void, Never>(executorPreference: executor) {
            _ = await result
            ended.finish()
        }
        for await _ in end {}
        try Task<Never, Never>.checkCancellation()
    }
}
