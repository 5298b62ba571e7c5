import HTTPTypes
import Spool
import SpoolTesting
import Testing

@testable import SpoolProxy

/// The failures after which a server in an app waits, and the duration of the wait.
@Suite(.timeLimit(.minutes(5))) struct OriginRetryWaiterTests {
    private let clock = ManualClock()

    /// Returns the number of waits after repeated failures with the same error, up to a limit of 700.
    private func waits(after error: CacheError) async throws -> Int {
        let retryWaiter = OriginRetryWaiter(clock: clock)
        var count = OriginRetryWaiter.Count()
        for round in 0..<700 {
            let passing = Task {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }
            do {
                try await retryWaiter.wait(after: error, &count)
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
    func `The number of waits for an unreachable origin is unlimited`(code: UpstreamError.Code) async throws {
        let error = CacheError(.originUnavailable, "a", underlying: UpstreamError(code, "b"))
        #expect(try await waits(after: error) == 700)
    }

    @Test(arguments: [408, 425, 429, 502, 503, 504])
    func `Waiting for an origin with a temporary status ends after ten minutes`(status: Int) async throws {
        #expect(try await waits(after: CacheError(.originUnavailable, "a", status: status)) == 599)
    }

    @Test(arguments: [500, 507, 599])
    func `Waiting for an origin with any other server error ends after one minute`(status: Int) async throws {
        #expect(try await waits(after: CacheError(.originUnavailable, "a", status: status)) == 59)
    }

    @Test(arguments: [
        CacheError(.originUnavailable, "a", status: 501), CacheError(.originUnavailable, "a", status: 505),
        CacheError(.originErrorStatus, "a", status: 404), CacheError(.malformedResponse, "a"),
        CacheError(.resourceChanged, "a"),
        CacheError(.originUnavailable, "a", underlying: UpstreamError(.untrustedServer, "b")),
        CacheError(.originUnavailable, "a", underlying: UpstreamError(.invalidRedirect, "b")),
    ])
    func `The server does not wait after a permanent error`(error: CacheError) async throws {
        #expect(try await waits(after: error) == 0)
    }

    @Test(arguments: [("30", 30), ("0", 1), ("86400", 60), ("soon", 1)])
    func `After a response, the server waits for its Retry-After time, but for one second to one minute`(
        field: String, seconds: Int
    ) async throws {
        var response = HTTPResponse(status: .tooManyRequests)
        response.headerFields[.retryAfter] = field
        let waiting = Task { [response] in
            var count = OriginRetryWaiter.Count()
            return try await OriginRetryWaiter(clock: clock).waits(after: response, &count)
        }
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(seconds * 1000 - 1))
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(1))
        #expect(try await waiting.value)
    }

    @Test(arguments: [200, 404, 501])
    func `The server does not wait after a response without a temporary error`(status: Int) async throws {
        var count = OriginRetryWaiter.Count()
        let response = HTTPResponse(status: .init(code: status))
        #expect(try await OriginRetryWaiter(clock: clock).waits(after: response, &count) == false)
    }

    @Test func `A wait ends when the client's task is cancelled`() async throws {
        let retryWaiter = OriginRetryWaiter(clock: clock)
        let waiting = Task {
            var count = OriginRetryWaiter.Count()
            try await retryWaiter.wait(after: CacheError(.originUnavailable, "a"), &count)
        }
        try await clock.waitForSleepers(1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test func `After the server stops, no request is repeated`() async throws {
        let retryWaiter = OriginRetryWaiter(clock: clock)
        let error = CacheError(.originUnavailable, "a")
        let waiting = Task {
            var count = OriginRetryWaiter.Count()
            return try await retryWaiter.waits(after: error, &count)
        }
        try await clock.waitForSleepers(1)
        retryWaiter.end()
        clock.advance(by: .seconds(1))
        #expect(try await waiting.value == false)
        var count = OriginRetryWaiter.Count()
        #expect(try await retryWaiter.waits(after: error, &count) == false)
    }
}
