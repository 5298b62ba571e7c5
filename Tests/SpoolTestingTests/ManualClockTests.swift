import SpoolTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct ManualClockTests {
    let clock = ManualClock()

    @Test func `A sleeper wakes at its deadline and not before`() async throws {
        let (woken, wake) = AsyncStream.makeStream(of: Int.self)
        let task = Task { [clock] in
            try await clock.sleep(for: .seconds(10))
            wake.yield(Int(clock.now.offset.components.seconds))
            wake.finish()
        }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(9))
        #expect(clock.sleepers == 1)
        clock.advance(by: .seconds(1))
        #expect(clock.sleepers == 0)
        var times: [Int] = []
        for await time in woken { times.append(time) }
        #expect(times == [10])
        try await task.value
    }

    @Test func `Sleeping until a past deadline returns immediately`() async throws {
        clock.advance(by: .seconds(5))
        try await clock.sleep(until: .init(offset: .seconds(5)))
        #expect(clock.now.offset == .seconds(5))
    }

    @Test func `A cancelled sleeper throws and is removed`() async throws {
        let task = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
        try await clock.waitForSleepers(1)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleepers == 0)
    }

    @Test func `Cancelling before the sleep throws`() async {
        let task = Task { [clock] in
            withUnsafeCurrentTask { $0?.cancel() }
            try await clock.sleep(for: .seconds(1))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleepers == 0)
    }

    @Test func `The clock reports its number of sleepers and the earliest deadline`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for seconds in [3, 1, 2] { group.addTask { [clock] in try await clock.sleep(for: .seconds(seconds)) } }
            try await clock.waitForSleepers(3)
            #expect(clock.nextDeadline?.offset == .seconds(1))
            clock.advance(by: .seconds(2))
            #expect(clock.sleepers == 1)
            clock.advance(by: .seconds(1))
            try await group.waitForAll()
        }
    }
}
