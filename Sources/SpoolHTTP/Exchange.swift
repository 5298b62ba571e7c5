import Foundation
import HTTPTypes
import Spool
import Synchronization

/// One request in flight: stands between a transport that pushes and a consumer that pulls.
///
/// Holds at most about 1 MiB. Small pieces that wait for the consumer are joined; see ``GatheredBytes``. It knows
/// only how to stop the transport and how to resume it after a pause.
/// Safe to use from any thread; calls its hooks outside of its lock.
final class Exchange<Chunk: GatheredBytes>: Sendable {
    /// The two things that the exchange asks of the transport.
    struct Transport: Sendable {
        /// Go on after ``Exchange/receive(_:count:)`` has returned false.
        var resume: @Sendable () -> Void
        /// Stop: nobody wants the rest.
        var cancel: @Sendable () -> Void
    }

    private struct Shell {
        var machine: ExchangeState<Chunk>
        var transport: Transport?
        /// How often a piece of the request's body has been sent.
        var sent = 0
        var watchdog: Task<Void, Never>?
    }

    private let name: String
    private let configuration: HTTPUpstream.Configuration
    private let state: Mutex<Shell>

    /// An exchange for the URL `name`.
    init(_ name: String, _ configuration: HTTPUpstream.Configuration) {
        self.name = name
        self.configuration = configuration
        state = Mutex(Shell(machine: ExchangeState(configuration)))
    }

    /// Bytes that have come and that nobody has taken.
    var bufferedBytes: Int { state.withLock { $0.machine.bufferedBytes } }

    private var cancelled: UpstreamError { UpstreamError(.cancelled, "\(name) was given up") }

    // MARK: Transport side

    /// Tells the exchange how to steer the transport, as soon as that has begun.
    func attach(_ transport: Transport) {
        let isOver = state.withLock { shell in
            shell.transport = transport
            return shell.machine.isOver
        }
        if isOver { transport.cancel() }
    }

    /// A piece of the request's body has been sent: the head is not expected before the last one.
    func noteSent() { state.withLock { $0.sent += 1 } }

    func receiveHead(_ head: HTTPResponse) {
        state.withLock { $0.machine.receiveHead(head) }?.resume(returning: head)
    }

    /// Takes in a chunk. False: send no more until `Transport.resume` is called.
    func receive(_ chunk: Chunk, count: Int) -> Bool {
        let (waiter, goesOn) = state.withLock { $0.machine.receive(chunk, count: count) }
        waiter?.resume(returning: chunk)
        return goesOn
    }

    /// The transport has ended.
    func finish(_ outcome: Result<Void, UpstreamError>) { finish(outcome, stopping: nil) }

    /// Whoever waits is woken last, so that it finds the transport stopped.
    private func finish(_ outcome: Result<Void, UpstreamError>, stopping transport: Transport?) {
        let (head, chunk) = state.withLock { $0.machine.finish(outcome) }
        transport?.cancel()
        end()
        switch outcome {
        case .success:
            head?.resume(throwing: UpstreamError(.connectionLost, "\(name) ended before a response"))
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

    /// Waits for the head.
    ///
    /// - Throws: ``UpstreamError``; `timedOut` after the head timeout without a piece of the request sent, `cancelled` soon after the task is cancelled.
    func head() async throws -> HTTPResponse {
        let timer = Task { [configuration, name] in
            var sent = 0
            repeat {
                sent = state.withLock { $0.sent }
                // Cancelled, the head has come.
                guard (try? await configuration.clock.sleep(for: configuration.headTimeout)) != nil else { return }
            } while sent < state.withLock { $0.sent }
            giveUp(UpstreamError(.timedOut, "\(name) did not respond within \(configuration.headTimeout)"))
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

    /// The next chunk, or nil at the end.
    ///
    /// After a cancel it hands out what has been sent already: that would have to be sent again.
    ///
    /// - Throws: ``UpstreamError``; `timedOut` after the idle timeout, `cancelled` soon after the task is cancelled.
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

    /// Gives up what is still to come; nothing if all has come.
    func close() {
        let (action, transport) = state.withLock { ($0.machine.close(), $0.transport) }
        action.1?.resume(throwing: cancelled)
        action.2?.resume(throwing: cancelled)
        if action.stops { transport?.cancel() }
        end()
    }

    /// Takes what has come of a body that nobody wants, so that the connection can be used again, and waits for no more
    /// than a moment: a body that goes on, or is silent, is closed.
    func discard() async {
        leave()
        // An error ends the body as its end does.
        while (try? await next()) != nil {}
        close()
    }

    /// The consumer's task has been cancelled: gives up once nothing comes for a moment, or a few moments later anyway.
    private func leave() {
        guard state.withLock({ $0.machine.leave() }) else { return }
        Task { [clock = configuration.drainClock, cancelled] in
            for _ in 0..<5 {
                // This task is never cancelled; if it were, the exchange would end sooner.
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
            // Cancelled, the exchange is over.
            while (try? await configuration.clock.sleep(for: configuration.idleTimeout / 4)) != nil {
                guard let self, !self.state.withLock({ $0.machine.isOver }) else { return }
                let (rate, time) = (configuration.minimumRate, configuration.minimumRateTime)
                switch self.state.withLock({ $0.machine.tick() }) {
                case .isSilent:
                    self.giveUp(UpstreamError(.timedOut, "\(name) sent nothing for \(configuration.idleTimeout)"))
                case .isSlow:
                    self.giveUp(UpstreamError(.timedOut, "\(name) sent fewer than \(rate) bytes a second for \(time)"))
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
