import Foundation
import Spool
import SpoolOrigin
import Synchronization

/// A scripted body that delivers at most the number of bytes that the test has allowed.
///
/// Only one consumer may wait at a time. Each change (an allowance, a release, the end of a pause, a failure) resumes
/// the consumer, which then checks the state again.
final class ScriptedFlow: Sendable {
    /// The bytes to deliver, and the events in between.
    struct Plan {
        var content: OriginContent
        /// The half-open range of `content` that the body consists of.
        var range: Range<Int64>
        /// The error that the body throws instead of its end.
        var failure: UpstreamError?
        /// The number of bytes after which the body waits until it is released.
        var stall: Int64?
        var pace: OriginPace?

        init(_ content: OriginContent, _ range: Range<Int64>, failure: UpstreamError? = nil) {
            self.content = content
            self.range = range
            self.failure = failure
        }
    }

    private struct State {
        var plan: Plan
        var position: Int64 = 0
        var allowance: Int64
        var paceLeft: Int64
        var isHeld = false
        var isPausing = false
        var failure: UpstreamError?
        var isOver = false
        var waiter: CheckedContinuation<Void, Never>?

        var isStalled: Bool { plan.stall == position }

        /// The next step.
        var step: Step {
            if let failure { return .end(failure) }
            let left = Int64(plan.range.count) - position
            if isStalled { return .wait }
            if left <= 0 { return .end(plan.failure) }
            if paceLeft <= 0, let pace = plan.pace { return isPausing ? .wait : .pause(pace.pause) }
            let count = min(left, allowance, paceLeft, plan.stall.map { $0 - position } ?? .max)
            return count > 0 ? .piece(count) : .wait
        }

        /// Returns the next step, and marks it as completed. If the step delivers a piece, the result includes the
        /// range of the piece.
        mutating func advance(_ pieceSize: Int) -> (Step, piece: Range<Int64>, OriginContent) {
            let step = step
            switch step {
            case .piece(let count): return (step, take(min(count, Int64(pieceSize))), plan.content)
            case .pause: isPausing = true
            case .end, .wait: break
            }
            return (step, 0..<0, plan.content)
        }

        private mutating func take(_ count: Int64) -> Range<Int64> {
            let start = plan.range.lowerBound + position
            position += count
            paceLeft -= plan.pace == nil ? 0 : count
            allowance -= allowance == .max ? 0 : count
            return start..<start + count
        }
    }

    private enum Step {
        /// The number of bytes that may be delivered.
        case piece(Int64)
        case end(UpstreamError?)
        case pause(Duration), wait
    }

    let path: String
    private let number: Int
    private let originState: OriginState
    private let pieceSize: Int
    private let onEnd: @Sendable () -> Void
    private let state: Mutex<State>

    init(
        _ exchange: OriginExchange, _ plan: Plan, _ originState: OriginState, pieceSize: Int, allowance: Int64,
        onEnd: @escaping @Sendable () -> Void
    ) {
        path = exchange.path
        number = exchange.number
        self.originState = originState
        self.pieceSize = pieceSize
        self.onEnd = onEnd
        state = Mutex(State(plan: plan, allowance: allowance, paceLeft: Int64(plan.pace?.bytes ?? .max)))
        holdIfStalled()
    }

    private func holdIfStalled() {
        let stalls = state.withLock { state in
            defer { state.isHeld = state.isHeld || state.isStalled }
            return state.isStalled && !state.isHeld
        }
        if stalls { originState.hold(number, path: path) { self.wake { $0.plan.stall = nil } } }
    }

    // MARK: Test side

    func allow(_ count: Int64) {
        wake { state in
            let (sum, overflow) = state.allowance.addingReportingOverflow(count)
            state.allowance = overflow ? .max : sum
        }
    }

    func fail(_ error: UpstreamError) { wake { $0.failure = error } }

    // MARK: Consumer side

    func next() async throws -> [UInt8]? {
        while true {
            if Task.isCancelled { close() }
            let (step, piece, content) = state.withLock { $0.advance(pieceSize) }
            switch step {
            case .piece:
                originState.log.update(number) { $0.bytesSent += Int64(piece.count) }
                // The stall starts before the piece is delivered, so that a client can release the stall once it has
                // received the bytes before the stall.
                holdIfStalled()
                return content.bytes(piece)
            case .end(let failure):
                over(failure == nil ? .finished : .interrupted)
                if let failure { throw failure }
                return nil
            case .pause(let duration):
                Task { [originState] in
                    // This task is never cancelled. A cancellation would only cause the next bytes to be delivered
                    // sooner.
                    try? await originState.clock.sleep(for: duration)
                    wake { state in
                        state.isPausing = false
                        state.paceLeft = Int64(state.plan.pace?.bytes ?? .max)
                    }
                }
            case .wait: await waitForChange()
            }
        }
    }

    /// Ends the flow, because the consumer has stopped reading.
    func close() {
        wake { $0.failure = $0.failure ?? UpstreamError(.cancelled, "\(path) was cancelled") }
        over(.clientDisconnected)
    }

    private func over(_ ending: OriginExchange.Ending) {
        let isFirst = state.withLock { state in
            defer { state.isOver = true }
            return !state.isOver
        }
        guard isFirst else { return }
        originState.drop(number)
        originState.log.update(number) { $0.ending = ending }
        onEnd()
    }

    private func waitForChange() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isIdle = state.withLock { state in
                    guard case .wait = state.step else { return false }
                    state.waiter = waiter
                    return true
                }
                if !isIdle { waiter.resume() }
            }
        } onCancel: {
            close()
        }
    }

    private func wake(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
