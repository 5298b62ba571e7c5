import Synchronization
import Testing

@testable import SpoolStorage

@Suite("Turns", .timeLimit(.minutes(10)))
struct KeyTurnsTests {
    @Test("Only one task at a time has the turn for a key, and every task gets it, even if other tasks throw errors")
    func exclusive() async throws {
        struct Failure: Error {}
        let turns = KeyTurns<Int>(.file)
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

    @Test("A task that holds a turn may wait only for turns of a later kind")
    func order() {
        #expect(TurnKind.response.mayTake(.variant) && TurnKind.variant.mayTake(.file))
        #expect(TurnKind.file.mayTake(.catalog) && TurnKind.response.mayTake(.catalog))
        #expect(!TurnKind.file.mayTake(.file) && !TurnKind.catalog.mayTake(.catalog))
        #expect(!TurnKind.catalog.mayTake(.file) && !TurnKind.file.mayTake(.response))
    }

    #if DEBUG
    @Test("A task's held turns are recorded, removed after an error, and not inherited by a task that it starts")
    func held() async throws {
        struct Failure: Error {}
        let files = KeyTurns<Int>(.file)
        let catalog = KeyTurns<Int>(.catalog)
        #expect(HeldTurns.kinds.isEmpty)
        try await files.runUnlessCancelled(0) {
            #expect(HeldTurns.kinds == [.file])
            await catalog.run(0) {
                await Task.yield()
                #expect(HeldTurns.kinds == [.file, .catalog])
                await Task { #expect(HeldTurns.kinds.isEmpty) }.value
            }
            #expect(HeldTurns.kinds == [.file])
        }
        await #expect(throws: Failure.self) { try await files.run(0) { throw Failure() } }
        #expect(HeldTurns.kinds.isEmpty)
    }

    @Test("In debug builds, waiting for turns in the wrong order causes a crash")
    func wrongOrder() async {
        await #expect(processExitsWith: .failure) {
            let catalog = KeyTurns<Int>(.catalog)
            let files = KeyTurns<Int>(.file)
            await catalog.run(0) { await files.run(0) {} }
        }
    }
    #endif

    @Test("E177: a cancelled task no longer waits for its turn, and the other tasks keep their order")
    func cancelled() async throws {
        let turns = KeyTurns<Int>(.file)
        #expect(turns.tryTake(0))
        let first = Task { try await turns.runUnlessCancelled(0) { 1 } }
        while turns.waiterCount(0) < 1 { await Task.yield() }
        let second = Task { try await turns.runUnlessCancelled(0) { 2 } }
        while turns.waiterCount(0) < 2 { await Task.yield() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(turns.waiterCount(0) == 1)
        turns.end(0)
        #expect(try await second.value == 2)
        #expect(turns.tryTake(0))
        // A task that is cancelled before it starts waiting does not wait either.
        let third = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await turns.runUnlessCancelled(0) { 3 }
        }
        third.cancel()
        await #expect(throws: CancellationError.self) { try await third.value }
        turns.end(0)
        #expect(turns.tryTake(0))
    }
}
