import Synchronization

/// Waits until the task is cancelled.
enum Forever {
    static func wait() async {
        let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.withLock { $0 = continuation }
                // It may have been cancelled before it waited.
                if Task.isCancelled { waiting.withLock { $0.take() }?.resume() }
            }
        } onCancel: {
            waiting.withLock { $0.take() }?.resume()
        }
    }
}
