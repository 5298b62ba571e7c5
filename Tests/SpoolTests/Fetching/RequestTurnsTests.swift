import Foundation
import HTTPTypes
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

    @Test("E325: a request with different fields waits for a limited time; an identical one waits until the turn ends")
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
        // Later requests do not wait for the same turn again.
        let later = try #require(turns.endOfTurn(within: .seconds(5), on: clock(manual)))
        for await result in later.prefix(1) { results.append(result) }
        turn.end()
        for await result in unlimited { results.append(result) }
        #expect(results == [true, true, false])
        #expect(turns.endOfTurn(within: nil, on: clock(manual)) == nil)
    }

    @Test("E337: concurrent requests with the same fields receive the cookies of different responses")
    func cookies() throws {
        let last = LastResponse()
        let source = MediaSource(url: try #require(URL(string: "http://h/a")))
        let other = MediaSource(url: source.url, headerFields: [.userAgent: "other"])
        for number in 1...3 {
            let head = HTTPResponse(status: .ok, headerFields: [.setCookie: "sid=\(number)"])
            last.recordCookies(of: head, for: source, at: .seconds(number))
        }
        #expect(last.takeCookies(for: other, at: .seconds(4)) == nil)
        let taken = (0..<4).map { _ in last.takeCookies(for: source, at: .seconds(11.5))?[.setCookie] }
        // The first cookie has expired.
        #expect(taken == ["sid=2", "sid=3", nil, nil])
    }
}
