import Foundation
import Testing

@testable import AVFoundation

@Suite("A player that sends several loading requests concurrently")
struct ConcurrentPatternTests {
    private static let policy: LoadingPolicy = {
        var policy = LoadingPolicy.hostile
        (policy.readLength, policy.cancelAbove, policy.keepBehind, policy.cancelsLateBy) = (40, 100, 20, 60)
        return policy
    }()

    private func opened(length: Int64? = 1000) -> ConcurrentPattern {
        var pattern = ConcurrentPattern(policy: Self.policy)
        #expect(pattern.open() == [.requestInformation(token: 1)])
        let information = ContentInformation(
            contentType: "public.mp3", contentLength: length, isByteRangeAccessSupported: length != nil)
        _ = pattern.finished(token: 1, information: information)
        return pattern
    }

    @Test("E80: on the first read, the player requests two ranges, the resource's end, and all bytes after the ranges")
    func first() {
        var pattern = opened()
        let (result, actions) = pattern.read(limit: 10)
        #expect(result == .wait)
        #expect(
            actions == [
                .askData(token: 2, offset: 0, length: 40, toEnd: false),
                .askData(token: 3, offset: 40, length: 40, toEnd: false),
                .askData(token: 4, offset: 960, length: 40, toEnd: false),
                .askData(token: 5, offset: 80, length: 920, toEnd: true),
            ])
    }

    @Test("E80: after a seek, content information is requested again, and earlier requests are cancelled after a delay")
    func lateCancel() {
        var pattern = opened()
        _ = pattern.read(limit: 10)
        pattern.seek(to: 500)
        let (_, actions) = pattern.read(limit: 10)
        #expect(
            actions.contains(.requestInformation(token: 9))
                && !actions.contains { if case .cancel = $0 { true } else { false } })
        #expect(pattern.received(Data(count: 30), token: 5) == [])
        let late = pattern.received(Data(count: 30), token: 5)
        #expect(late == [.cancel(token: 2), .cancel(token: 3), .cancel(token: 4), .cancel(token: 5)])
    }

    @Test("A22: without range support, the player sends a single data request, which starts at the first byte")
    func sequential() {
        var pattern = opened(length: nil)
        #expect(pattern.read(limit: 10).1 == [.askData(token: 2, offset: 0, length: nil, toEnd: true)])
        #expect(pattern.received(Data(count: 500), token: 2) == [.wakeReader])
        #expect(pattern.read(limit: 500).0 == .bytes(Data(count: 500)))
        _ = pattern.finished(token: 2, information: nil)
        #expect(pattern.read(limit: 1).0 == .endOfResource)
    }

    @Test(
        "After random seeks, reads return correct bytes, and no read waits without an open request", arguments: 0..<20)
    func random(seed: UInt64) {
        var pattern = opened()
        RandomLoading(steps: 3000, stepsPerSeek: 20, reads: 8).run(
            &pattern, seed: seed,
            checkWait: { open, hasAsked in
                #expect(!open.isEmpty || hasAsked)
            })
    }
}
