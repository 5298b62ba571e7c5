import Foundation
import SpoolTesting
import Synchronization
import Testing

@Suite("Seeded executor", .timeLimit(.minutes(10)))
struct SeededExecutorTests {
    /// The state that the tasks of a test share.
    private final class Shared: Sendable {
        let events = Mutex<[String]>([])
        let isOver = Mutex(false)
    }

    /// Returns the steps of tasks that sleep and yield, in the order of their execution.
    private static func order(seed: UInt64) -> [String] {
        let executor = SeededExecutor(seed: seed)
        let shared = Shared()
        for name in ["a", "b", "c", "d", "e"] {
            Task(executorPreference: executor) {
                for step in 0..<4 as Range<Int> {
                    shared.events.withLock { $0.append("\(name)\(step)") }
                    if step == 1 {
                        try? await executor.clock.sleep(until: executor.clock.now.advanced(by: .seconds(1)))
                    }
                    await Task.yield()
                }
            }
        }
        #expect(executor.run { false } == .stuck)
        return shared.events.withLock { $0 }
    }

    @Test("Each seed always gives the same order of steps, and most seeds give different orders")
    func repeats() {
        let orders = (0..<8).map { Self.order(seed: $0) }
        #expect(orders == (0..<8).map { Self.order(seed: $0) })
        #expect(Set(orders).count > 4)
        #expect(orders.allSatisfy { $0.count == 20 })
    }

    @Test("If no task can run, the clock advances to the deadline of the next sleeper")
    func time() {
        let executor = SeededExecutor(seed: 1)
        let shared = Shared()
        Task(executorPreference: executor) {
            try? await executor.clock.sleep(until: .init(offset: .seconds(3_600)))
            shared.isOver.withLock { $0 = true }
        }
        #expect(executor.run { shared.isOver.withLock { $0 } } == .finished)
        #expect(executor.clock.now.offset >= .seconds(3_600))
    }

    @Test("A run reports tasks that wait forever as stuck, and tasks that run forever as endless")
    func endings() {
        let stuck = SeededExecutor(seed: 1)
        Task(executorPreference: stuck) { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
        #expect(stuck.run { false } == .stuck)
        let endless = SeededExecutor(seed: 1)
        let shared = Shared()
        Task(executorPreference: endless) { while !shared.isOver.withLock({ $0 }) { await Task.yield() } }
        #expect(endless.run(limit: 100) { false } == .endless)
        shared.isOver.withLock { $0 = true }
        #expect(endless.run { false } == .stuck)
    }
}
