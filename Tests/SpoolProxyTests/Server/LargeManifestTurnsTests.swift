import SpoolTesting
import Synchronization
import Testing

@testable import SpoolProxy

@Suite(.timeLimit(.minutes(5))) struct LargeManifestTurnsTests {
    private final class Counts: Sendable {
        let state = Mutex((now: 0, most: 0, all: 0))
    }

    @Test("E455: at most two large manifests are rewritten at a time, and none for a client that has disconnected")
    func turns() async throws {
        let turns = LargeManifestTurns()
        let gates = (0..<10).map { _ in AsyncStream.makeStream(of: Void.self) }
        let (starts, started) = AsyncStream.makeStream(of: Int.self)
        let counts = Counts()
        let tasks = gates.enumerated().map { (number, gate) in
            Task {
                try await turns.run {
                    counts.state.withLock { running in
                        running.now += 1
                        running.all += 1
                        running.most = max(running.most, running.now)
                    }
                    started.yield(number)
                    for await _ in gate.stream {}
                    counts.state.withLock { $0.now -= 1 }
                }
            }
        }
        var first: Set<Int> = []
        for await number in starts {
            first.insert(number)
            if first.count == 2 { break }
        }
        for (number, task) in tasks.enumerated() where !first.contains(number) { task.cancel() }
        for (number, task) in tasks.enumerated() where !first.contains(number) {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        for gate in gates { gate.continuation.finish() }
        for number in first { try await tasks[number].value }
        #expect(counts.state.withLock { $0 == (now: 0, most: 2, all: 2) })
    }
}
