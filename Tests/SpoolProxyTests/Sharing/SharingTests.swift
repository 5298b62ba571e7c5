import Foundation
import Testing

/// The separation of users in a reverse proxy's cache.
///
/// `SPOOL_SHARING_REQUESTS` sets the number of requests, and `SPOOL_SHARING_SEED` the first seed.
@Suite(.timeLimit(.minutes(60))) struct SharingTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["SPOOL_SHARING_REQUESTS"].flatMap { Int($0) } ?? 500
    private static let seed = environment["SPOOL_SHARING_SEED"].flatMap { UInt64($0) } ?? 1
    private static let runLength = 250

    @Test(
        "E227: no user receives another user's response unless RFC 9111 permits it, and shared media is fetched once"
    )
    func users() async throws {
        var all = SharingRun.Result()
        let start = ContinuousClock.now
        for run in 0..<max(1, Self.count / Self.runLength) {
            all.add(try await SharingRun(seed: Self.seed + UInt64(run), count: Self.runLength).run())
            if all.problems.count >= 10 { break }
        }
        for problem in all.problems.prefix(10) { Issue.record("\(problem)") }
        #expect(all.truncated <= 2 + all.requests / 50)
        // If few responses are shared, the run does not test enough.
        #expect(all.shared > all.requests / 50)
        print(
            "sharing: \(all.requests) requests, \(all.responses) responses, \(all.shared) of them shared, "
                + "\(all.truncated) truncated, "
                + "\(all.originRequests) origin requests, \(all.media) media, in \(ContinuousClock.now - start)"
        )
    }
}
