import Foundation
import Synchronization
import Testing

@testable import SpoolStorage

@Suite(.timeLimit(.minutes(10))) struct BackgroundWorkTests {
    @Test func `A wait for all work includes work on other threads, and work that it starts`()
        async throws
    {
        let work = BackgroundWork(executor: BlockingExecutor(threadLimit: 1))
        let events = Mutex([String]())
        let (entered, hasEntered) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            work.counting {
                hasEntered.finish()
                gate.wait()
                events.withLock { $0.append("done") }
                work.start(in: .background) { events.withLock { $0.append("followed") } }
            }
        }
        for await _ in entered {}
        let waiting = Task {
            await work.waitUntilIdle()
            events.withLock { $0.append("idle") }
        }
        for _ in 0..<1000 { await Task.yield() }
        gate.signal()
        await waiting.value
        #expect(events.withLock { $0 } == ["done", "followed", "idle"])
    }
}
