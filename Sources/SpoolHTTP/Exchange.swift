import Foundation
import HTTPTypes
import Spool
import Synchronization

/// One request in progress, which connects a pushing transport with a pulling consumer.
///
/// An exchange buffers at most about 1 MiB. Small pieces that wait for the consumer are joined; see ``GatheredBytes``.
/// It controls the transport only by stopping it, and by resuming it after a pause. It may be used from any thread, and
/// calls the transport without holding its lock.
final class Exchange<Chunk: GatheredBytes>: Sendable {
    /// The operations of the transport.
    struct Transport: Sendable {
        /// Resumes the transport after ``Exchange/receive(_:count:)`` has returned false.
        var resume: @Sendable () -> Void
        /// Stops the transport, because the rest of the body is not needed.
        var cancel: @Sendable () -> Void
    }

    private struct Shell {
        var machine: ExchangeState<Chunk>
        var transport: Transport?
        /// The number of sent pieces of the request's body.
        var sent = 0
        var watchdog: Task<Void, Never>?
    }

    private let name: String
    private let configuration: HTTPUpstream.Configuration
    private let state: Mutex<Shell>

    /// Creates an exchange for a request. In messages, `name` identifies the URL of the request.
    init(_ name: String, _ configuration: HTTPUpstream.Configuration) {
        self.name = name
        self.configuration = configuration
        state = Mutex(Shell(machine: ExchangeState(configuration)))
    }

    /// The number of received bytes that the consumer has not taken.
    var bufferedBytes: Int { state.withLock { $0.machine.bufferedBytes } }

    /// Whether the consumer is waiting for a chunk.
    var isAwaited: Bool { state.withLock { $0.machine.isAwaited } }

    private var cancelled: UpstreamError { UpstreamError(.cancelled, "the request to \(name) was cancelled") }

    // MARK: Transport side

    /// Sets the operations of the transport, after the transport has started.
    func attach(_ transport: Transport) {
        let isOver = state.withLock { shell in
            shell.transport = transport
            return shell.machine.isOver
        }
        if isOver { transport.cancel() }
    }

    /// Records a sent piece of the request's body. Each piece restarts the timeout for the headers.
    func recordSent() { state.withLock { $0.sent += 1 } }

    func receiveHead(_ head: HTTPResponse) {
        state.withLock { $0.machine.receiveHead(head) }?.resume(returning: head)
    }

    /// Receives a chunk. Returns `false` if the transport should pause until `Transport.resume` is called.
    func receive(_ chunk: Chunk, count: Int) -> Bool {
        let (waiter, shouldContinue) = state.withLock { $0.machine.receive(chunk, count: count) }
        waiter?.resume(returning: chunk)
        return shouldContinue
    }

    /// Ends the exchange, because the transport has finished.
    func finish(_ outcome: Result<Void, UpstreamError>) { finish(outcome, stopping: nil) }

    /// Ends the exchange. The waiting task is resumed last, after the transport has been stopped.
    private func finish(_ outcome: Result<Void, UpstreamError>, stopping transport: Transport?) {
        let (head, chunk) = state.withLock { $0.machine.finish(outcome) }
        transport?.cancel()
        end()
        switch outcome {
        case .success:
            head?.resume(throwing: UpstreamError(.connectionLost, "\(name) ended without a response"))
            chunk?.resume(returning: nil)
        case .failure(let error):
            head?.resume(throwing: error)
            chunk?.resume(throwing: error)
        }
    }

    private func end() {
        let watchdog = state.withLock { shell in
            defer { (shell.watchdog, shell.transport) = (nil, nil) }
            return shell.watchdog
        }
        watchdog?.cancel()
    }

    // MARK: Consumer side

    /// Waits for the response headers, and returns them.
    ///
    /// - Throws: ``UpstreamError``: `timedOut` if neither headers are received nor a piece of the request is sent
    ///   during the timeout, `cancelled` soon after the task is cancelled.
    func head() async throws -> HTTPResponse {
        let timer = Task { [configuration, name] in
            var sent = 0
            repeat {
                sent = state.withLock { $0.sent }
                let limit = configuration.responseTimeout
                let isOver = (try? await configuration.clock.sleep(for: limit)) != nil  // The headers cancel the sleep.
                guard isOver else { return }
            } while sent < state.withLock { $0.sent }
            giveUp(UpstreamError(.timedOut, "\(name) did not respond within \(configuration.responseTimeout)"))
        }
        defer { timer.cancel() }
        let head = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: ExchangeState<Chunk>.HeadWaiter) in
                let cancelled = cancelled
                let result = state.withLock { $0.machine.awaitHead(waiter, cancelled: cancelled) }
                if let result { waiter.resume(with: result) }
            }
        } onCancel: {
            leave()
        }
        watchForSilence()
        return head
    }

    /// Returns the next chunk, or `nil` at the end.
    ///
    /// After cancellation, the method still delivers bytes that the origin has already sent, so that they are not sent
    /// again.
    ///
    /// - Throws: ``UpstreamError``: `timedOut` after the idle timeout, `cancelled` soon after the task is cancelled.
    func next() async throws -> Chunk? {
        let cancelled = cancelled
        if Task.isCancelled { leave() }
        if case .now(let result, let resumes) = state.withLock({ $0.machine.take(cancelled: cancelled) }) {
            if resumes { resumeTransport() }
            return try result.get()
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: ExchangeState<Chunk>.ChunkWaiter) in
                let taken = state.withLock { $0.machine.awaitChunk(waiter, cancelled: cancelled) }
                if case .now(let result, let resumes) = taken {
                    if resumes { resumeTransport() }
                    waiter.resume(with: result)
                }
            }
        } onCancel: {
            leave()
        }
    }

    /// Stops the transport, unless the whole body was received.
    func close() {
        let (action, transport) = state.withLock { ($0.machine.close(), $0.transport) }
        action.1?.resume(throwing: cancelled)
        action.2?.resume(throwing: cancelled)
        if action.stops { transport?.cancel() }
        end()
    }

    /// Reads the rest of a body that is not needed, so that the connection can be reused.
    ///
    /// The body is closed if it has not ended after a short time, or if nothing is received for a moment.
    func discard() async {
        leave()
        // An error also ends the body.
        while (try? await next()) != nil {}
        close()
    }

    /// Handles the cancellation of the consumer's task. The exchange ends when nothing is received for a moment, or
    /// when a short time limit or 1 MiB is reached.
    private func leave() {
        guard state.withLock({ $0.machine.leave() }) else { return }
        Task { [clock = configuration.drainClock, cancelled] in
            for _ in 0..<5 {
                // This task is never cancelled. Cancelling would only end the exchange sooner.
                try? await clock.sleep(for: .milliseconds(10))
                guard state.withLock({ $0.machine.stillReceives() }) else { break }
            }
            giveUp(cancelled)
        }
    }

    private func giveUp(_ error: UpstreamError) {
        finish(.failure(error), stopping: state.withLock { $0.machine.isOver ? nil : $0.transport })
    }

    private func resumeTransport() { state.withLock { $0.transport }?.resume() }

    private func watchForSilence() {
        let watchdog = Task { [weak self, configuration, name] in
            // The sleep is cancelled when the exchange is over.
            while (try? await configuration.clock.sleep(for: configuration.idleTimeout / 4)) != nil {
                guard let self, !self.state.withLock({ $0.machine.isOver }) else { return }
                let (rate, time) = (configuration.lowSpeedLimit, configuration.lowSpeedTime)
                switch self.state.withLock({ $0.machine.tick() }) {
                case .isSilent:
                    self.giveUp(UpstreamError(.timedOut, "\(name) sent nothing for \(configuration.idleTimeout)"))
                case .isSlow:
                    self.giveUp(
                        UpstreamError(.timedOut, "\(name) sent fewer than \(rate) bytes per second for \(time)"))
                case nil: break
                }
            }
        }
        let isOver = state.withLock { shell in
            shell.watchdog = watchdog
            return shell.machine.isOver
        }
        if isOver { watchdog.cancel() }
    }
}

/// The body of an ``Exchange``, for ``UpstreamBody``. The exchange is closed when the body is released, before or
/// during iteration.
struct ExchangeBody<Chunk: GatheredBytes>: AsyncSequence, Sendable {
    typealias Element = Chunk

    /// An object that closes the exchange when the last reference is released, unless an iterator has taken over.
    private final class Owner: Sendable {
        let exchange: Exchange<Chunk>
        let isTakenOver = Mutex(false)
        init(_ exchange: Exchange<Chunk>) { self.exchange = exchange }
        deinit { if !isTakenOver.withLock({ $0 }) { exchange.close() } }
    }

    private let owner: Owner

    init(_ exchange: Exchange<Chunk>) { owner = Owner(exchange) }

    func makeAsyncIterator() -> Iterator {
        owner.isTakenOver.withLock { $0 = true }
        return Iterator(owner.exchange)
    }

    final class Iterator: AsyncIteratorProtocol {
        private let exchange: Exchange<Chunk>
        init(_ exchange: Exchange<Chunk>) { self.exchange = exchange }
        deinit { exchange.close() }

        func next() async throws -> Chunk? { try await exchange.next() }
    }
}
