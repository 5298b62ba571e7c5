import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// Origins that accept only one connection per account.
@Suite(.timeLimit(.minutes(10)))
struct OneConnectionCases {
    static let film = PatternBytes(seed: 1, length: 9_000_000)

    /// Reads the end of media while the response to a reader of its start is stalled.
    ///
    /// - Returns: The error of the second reader (`nil` if there is none), and the number of its requests.
    private func readEnd(
        status: Int, isPermanent: Bool = false, retryAfter: String? = nil, isSite: Bool = false
    ) async throws -> (error: CacheError?, requests: Int) {
        let fields = retryAfter.map { ["Retry-After": $0] } ?? [:]
        let rejection = OriginRule(isPermanent ? 1..<100 : 1..<2, .status(status, fields))
        let resource = OriginResource(.pattern(Self.film), rules: [OriginRule(0..<1, .stall(after: 1000)), rejection])
        let stage = try MemoryStage(["/a": resource]) {
            $0.retry.maximumRetryCount = 0
            if isSite { ($0.storesEveryStatus, $0.freshness) = (true, .http) }
        }
        return try await stage.session { cache in
            let media = cache.media(for: stage.url())
            let first = media.reader()
            _ = try await first.next()
            let error = try await media.failure(.from(8_000_000)) { try Self.film.verify($0.data, at: $0.offset) }
            let requests = stage.origin.log.exchanges.count - 1
            first.cancel()
            stage.origin.release()
            return (error, requests)
        }
    }

    @Test(
        "E245: a request that is rejected while another connection is open is sent once more",
        arguments: [403, 429, 503, 509])
    func rejectedOnce(status: Int) async throws {
        let (error, requests) = try await readEnd(status: status)
        #expect(error == nil)
        #expect(requests >= 2)
    }

    @Test("E245: if the second request is also rejected, the rejection is reported")
    func rejectedAlways() async throws {
        let (error, requests) = try await readEnd(status: 403, isPermanent: true)
        #expect(error?.httpStatus == 403)
        #expect((2...4).contains(requests))
    }

    @Test(
        "E331: a rejection by the site for which the cache is a reverse proxy is forwarded immediately",
        arguments: [403, 503])
    func rejectedBySite(status: Int) async throws {
        let (error, requests) = try await readEnd(status: status, isPermanent: true, isSite: true)
        #expect(error?.httpStatus == status || error == nil)
        #expect(requests == 1)
    }

    @Test("E245: a request that is rejected with Retry-After is not repeated immediately")
    func rejectedUntilLater() async throws {
        let (error, requests) = try await readEnd(status: 503, isPermanent: true, retryAfter: "100")
        #expect(error?.httpStatus == 503)
        #expect(requests <= 2)
    }
}
