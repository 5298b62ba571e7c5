#if Proxy
import NIOCore
import Synchronization

/// The messages that one live page has not received yet.
///
/// If the page receives them too slowly, its stream ends. The browser then connects again and resumes.
final class EventClient: Sendable {
    private struct State {
        var messages: [ByteBuffer] = []
        var isEnded = false
        var waiter: CheckedContinuation<ByteBuffer?, Never>?
    }

    /// The maximum number of messages that wait.
    static let limit = 16

    private let state = Mutex(State())

    /// Adds a message. If too many wait, the stream ends instead.
    ///
    /// - Returns: `false` if the stream has ended.
    func send(_ message: ByteBuffer) -> Bool {
        let (isOpen, waiter) = state.withLock { state -> (Bool, CheckedContinuation<ByteBuffer?, Never>?) in
            if state.isEnded { return (false, nil) }
            if let waiter = state.waiter.take() { return (true, waiter) }
            guard state.messages.count < Self.limit else {
                state.isEnded = true
                state.messages = []
                return (false, nil)
            }
            state.messages.append(message)
            return (true, nil)
        }
        waiter?.resume(returning: message)
        return isOpen
    }

    /// Ends the stream after the waiting messages.
    func end() {
        let waiter = state.withLock { state in
            state.isEnded = true
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    /// Returns the next message. `nil` at the end, and if the task is cancelled.
    func next() async -> ByteBuffer? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready = state.withLock { state -> ByteBuffer?? in
                    if Task.isCancelled { return .some(nil) }
                    if !state.messages.isEmpty { return .some(state.messages.removeFirst()) }
                    if state.isEnded { return .some(nil) }
                    state.waiter = continuation
                    return .none
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            end()
        }
    }
}
#endif
