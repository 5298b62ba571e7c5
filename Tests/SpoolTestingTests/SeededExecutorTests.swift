import Foundation
import SpoolTesting
import Synchronization
import Testing

@Suite("A seeded executor", .timeLimit(.minutes(10)))
struct SeededExecutorTests {
    /// What the tasks of a test share.
    private final class Shared: Sendable {
        let events = Mutex<[String]>([])
        let isOver = Mutex(false)
    }

    /// What some tasks that sleep and yield do, in the order in which they do it.
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

    @Test("One seed gives one order, another seed another")
    func repeats() {
        let orders = (0..<8).map { Self.order(seed: $0) }
        #expect(orders == (0..<8).map { Self.order(seed: $0) })
        #expect(Set(orders).count > 4)
        #expect(orders.allSatisfy { $0.count == 20 })
    }

    @Test("Time moves to the next sleeper when nothing else is left")
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

    @Test("What waits for ever is told from what never ends")
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
