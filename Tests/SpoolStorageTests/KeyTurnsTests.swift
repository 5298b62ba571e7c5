import Synchronization
import Testing

@testable import SpoolStorage

@Suite("Turns", .timeLimit(.minutes(10)))
struct KeyTurnsTests {
    @Test("Of one key one at a time is in, and all get in, errors or not")
    func exclusive() async throws {
        struct Failure: Error {}
        let turns = KeyTurns<Int>()
        let state = Mutex((inside: 0, most: 0, done: 0))
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<50 as Range<Int> {
                group.addTask { @Sendable [index] in
                    do {
                        try await turns.run(0) {
                            state.withLock { $0 = ($0.inside + 1, max($0.most, $0.inside + 1), $0.done) }
                            await Task.yield()
                            state.withLock { $0 = ($0.inside - 1, $0.most, $0.done + 1) }
                            if index % 3 == 0 { throw Failure() }
                        }
                    } catch {}
                }
            }
        }
        #expect(state.withLock { $0.most } == 1)
        #expect(state.withLock { $0.done } == 50)
    }
}
