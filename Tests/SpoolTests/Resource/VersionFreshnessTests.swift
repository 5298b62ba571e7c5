import Foundation
import HTTPTypes
import SpoolTesting
import Testing

@testable import Spool

@Suite struct VersionFreshnessTests {
    /// A response that must be validated before each use.
    private static let stale = StoredFreshness(freshUntil: 0, mustRevalidate: true, vary: [], selected: "")

    @Test(
        "E341: a shared response that must be validated serves only readers that were opened before its request",
        arguments: [true, false])
    func openings(isShared: Bool) {
        let freshness = VersionFreshness(
            .http, CacheClock(clock: ManualClock()), sharing: isShared ? HTTPFields() : nil)
        let first = freshness.recordOpening()
        let openings = freshness.openingsOfRequest
        let second = freshness.recordOpening()
        freshness.confirm(Self.stale, for: openings)
        #expect(freshness.use(first) == .fresh)
        #expect(freshness.use(second) == (isShared ? .validate : .fresh))
        #expect(freshness.use(freshness.recordOpening()) == .validate)
    }
}
