import SpoolStorage
import SpoolTesting
import Testing

@testable import Spool

/// The turns in which client requests may request a resource from the origin.
@Suite(.timeLimit(.minutes(5)))
struct RequestTurnsTests {
    private func clock(_ manual: ManualClock) -> CacheClock {
        var clock = CacheClock(clock: manual)
        clock.networkSleep = { try await manual.sleep(for: $0) }
        return clock
    }

    @Test("E325: a request with other header fields stops waiting for a turn at its limit, and others wait for its end")
    func limit() async throws {
        let manual = ManualClock()
        let turns = RequestTurns()
        let turn = try #require(turns.take(joinsTransfer: false))
        let limited = try #require(turns.endOfTurn(within: .seconds(5), on: clock(manual)))
        let unlimited = try #require(turns.endOfTurn(within: nil, on: clock(manual)))
        try await manual.waitForSleepers(1)
        manual.advance(by: .seconds(5))
        var results: [Bool] = []
        for await result in limited { results.append(result) }
        #expect(results == [true])
        #expect(turns.isTaken)
        turn.end()
        for await result in unlimited { results.append(result) }
        #expect(results == [true, false])
        #expect(turns.endOfTurn(within: nil, on: clock(manual)) == nil)
    }
}
