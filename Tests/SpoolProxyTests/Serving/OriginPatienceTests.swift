import HTTPTypes
import Spool
import SpoolTesting
import Testing

@testable import SpoolProxy

/// What a server in an app waits for, and for how long.
@Suite(.timeLimit(.minutes(5))) struct OriginPatienceTests {
    private let clock = ManualClock()

    /// How often it waits for what ends with this error; no more than 700 times.
    private func waits(after error: CacheError) async throws -> Int {
        let patience = OriginPatience(clock: clock)
        var count = OriginPatience.Count()
        for round in 0..<700 {
            let passing = Task {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }
            do {
                try await patience.wait(after: error, &count)
                try await passing.value
            } catch let thrown as CacheError {
                passing.cancel()
                #expect(thrown.code == error.code && thrown.httpStatus == error.httpStatus)
                return round
            }
        }
        return 700
    }

    @Test(arguments: [UpstreamError.Code.unreachable, .timedOut, .connectionLost])
    func `An origin that can't be reached is waited for as long as it takes`(code: UpstreamError.Code) async throws {
        let error = CacheError(.originUnavailable, "a", underlying: UpstreamError(code, "b"))
        #expect(try await waits(after: error) == 700)
    }

    @Test(arguments: [408, 425, 429, 502, 503, 504])
    func `One that can't serve for the moment is waited for for ten minutes`(status: Int) async throws {
        #expect(try await waits(after: CacheError(.originUnavailable, "a", status: status)) == 599)
    }

    @Test(arguments: [500, 507, 599])
    func `One that has failed is waited for for a minute`(status: Int) async throws {
        #expect(try await waits(after: CacheError(.originUnavailable, "a", status: status)) == 59)
    }

    @Test(arguments: [
        CacheError(.originUnavailable, "a", status: 501), CacheError(.originUnavailable, "a", status: 505),
        CacheError(.originRefused, "a", status: 404), CacheError(.malformedResponse, "a"),
        CacheError(.resourceChanged, "a"),
        CacheError(.originUnavailable, "a", underlying: UpstreamError(.untrusted, "b")),
        CacheError(.originUnavailable, "a", underlying: UpstreamError(.redirects, "b")),
    ])
    func `What time does not cure is not waited for`(error: CacheError) async throws {
        #expect(try await waits(after: error) == 0)
    }

    @Test(arguments: [("30", 30), ("0", 1), ("86400", 60), ("soon", 1)])
    func `A response is waited for for as long as it asks, within a minute`(field: String, seconds: Int) async throws {
        var response = HTTPResponse(status: .tooManyRequests)
        response.headerFields[.retryAfter] = field
        let waiting = Task { [response] in
            var count = OriginPatience.Count()
            return try await OriginPatience(clock: clock).waits(after: response, &count)
        }
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(seconds * 1000 - 1))
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(1))
        #expect(try await waiting.value)
    }

    @Test(arguments: [200, 404, 501])
    func `A response that is no refusal of the moment is not waited for`(status: Int) async throws {
        var count = OriginPatience.Count()
        let response = HTTPResponse(status: .init(code: status))
        #expect(try await OriginPatience(clock: clock).waits(after: response, &count) == false)
    }

    @Test func `Who has gone is not waited for`() async throws {
        let patience = OriginPatience(clock: clock)
        let waiting = Task {
            var count = OriginPatience.Count()
            try await patience.wait(after: CacheError(.originUnavailable, "a"), &count)
        }
        try await clock.waitForSleepers(1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func `Once the server stops, nothing is waited for`() async throws {
        let patience = OriginPatience(clock: clock)
        let error = CacheError(.originUnavailable, "a")
        let waiting = Task {
            var count = OriginPatience.Count()
            return try await patience.waits(after: error, &count)
        }
        try await clock.waitForSleepers(1)
        patience.end()
        clock.advance(by: .seconds(1))
        #expect(try await waiting.value == false)
        var count = OriginPatience.Count()
        #expect(try await patience.waits(after: error, &count) == false)
    }
}
