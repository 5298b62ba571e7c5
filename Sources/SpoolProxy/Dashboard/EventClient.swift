#if Proxy
import NIOCore
import Synchronization

/// The messages that one live page has not received yet.
///
/// If the page receives them too slowly, its connection is closed. The browser then connects again and resumes.
final class EventClient: Sendable {
    private typealias Waiter = CheckedContinuation<ByteBuffer?, Never>
    private typealias Disconnect = @Sendable () -> Void

    private struct State {
        var messages: [ByteBuffer] = []
        var isEnded = false
        var waiter: Waiter?
        /// A function that closes the connection of the page, or `nil` before the response starts.
        var disconnect: Disconnect?
    }

    /// The maximum number of waiting messages.
    static let limit = 16

    private let state = Mutex(State())

    /// Sets the function that closes the connection of the page.
    func start(_ disconnect: @escaping @Sendable () -> Void) { state.withLock { $0.disconnect = disconnect } }

    /// Adds a message. If too many messages are waiting, the connection of the page is closed instead.
    ///
    /// - Returns: `false` if the stream has ended.
    func send(_ message: ByteBuffer) -> Bool {
        let (isOpen, waiter, disconnect) = state.withLock { state -> (Bool, Waiter?, Disconnect?) in
            if state.isEnded { return (false, nil, nil) }
            if let waiter = state.waiter.take() { return (true, waiter, nil) }
            guard state.messages.count < Self.limit else {
                state.isEnded = true
                state.messages = []
                return (false, nil, state.disconnect)
            }
            state.messages.append(message)
            return (true, nil, nil)
        }
        waiter?.resume(returning: message)
        disconnect?()
        return isOpen
    }

    /// Ends the stream with a last message. If the page has not received the previous message, its connection is closed
    /// instead.
    func end(with last: ByteBuffer) {
        let (waiter, disconnect) = state.withLock { state -> (Waiter?, Disconnect?) in
            if state.isEnded { return (nil, nil) }
            state.isEnded = true
            if let waiter = state.waiter.take() { return (waiter, nil) }
            state.messages.append(last)
            return (nil, state.disconnect)
        }
        waiter?.resume(returning: last)
        disconnect?()
    }

    /// Ends the stream after the waiting messages.
    func end() {
        let waiter = state.withLock { state in
            state.isEnded = true
            return state.waiter.take()
        }
        waiter?.resume(returning: nil)
    }

    /// Returns the next message, or `nil` at the end or if the task is cancelled.
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
