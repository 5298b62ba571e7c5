import Foundation
import Testing

@testable import AVFoundation

@Suite("A player that sends one loading request at a time")
struct LoadingPatternTests {
    private typealias Action = LoadingPattern.Action
    private static let policy = LoadingPolicy(
        cancelAbove: 100, requestBelow: 30, secondsAhead: nil, keepBehind: 20, prebufferLength: 50)

    /// Returns a pattern that has received the content information.
    private func opened(
        _ policy: LoadingPolicy = policy, seekable: Bool = true, length: Int64? = 1000
    )
        -> LoadingPattern
    {
        var pattern = LoadingPattern(policy: policy)
        #expect(pattern.open() == [.requestInformation(token: 1)])
        #expect(pattern.opening() == .wait)
        let information = ContentInformation(
            contentType: "public.mp3", contentLength: length, isByteRangeAccessSupported: seekable)
        #expect(pattern.finished(token: 1, information: information) == [.wakeReader])
        #expect(pattern.opening() == .bytes(Data()))
        return pattern
    }

    private func read(_ pattern: inout LoadingPattern, _ limit: Int = 1000) -> [Action] {
        let (response, actions) = pattern.read(limit: limit)
        #expect(response == .wait)
        return actions
    }

    private func bytes(_ pattern: inout LoadingPattern, _ limit: Int) -> (Int, [Action]) {
        let (response, actions) = pattern.read(limit: limit)
        if case .bytes(let data) = response { return (data.count, actions) }
        return (-1, actions)
    }

    @Test("The player requests content information first, and then all bytes from the current position to the end")
    func first() {
        var pattern = opened()
        #expect(read(&pattern) == [.askData(token: 2, offset: 0, length: 1000, toEnd: true)])
        #expect(read(&pattern) == [])
        #expect(pattern.received(Data(count: 10), token: 2) == [.wakeReader])
        #expect(bytes(&pattern, 100).0 == 10)
    }

    @Test("A request is cancelled when enough bytes are buffered, and a new one starts when few bytes are left")
    func hysteresis() {
        var pattern = opened()
        _ = read(&pattern)
        #expect(pattern.received(Data(count: 60), token: 2) == [.wakeReader])
        #expect(pattern.received(Data(count: 60), token: 2) == [.cancel(token: 2)])
        #expect(bytes(&pattern, 60) == (60, []))
        #expect(bytes(&pattern, 29) == (29, []))
        #expect(bytes(&pattern, 5) == (5, [.askData(token: 3, offset: 120, length: 880, toEnd: true)]))
    }

    @Test(
        "If the bit rate is known, the buffer's limits depend on the number of seconds to buffer, within fixed bounds")
    func bitRate() {
        var policy = Self.policy
        policy.secondsAhead = 30
        var pattern = opened(policy)
        pattern.learned(bytesPerSecond: 100_000, secondsAhead: nil)
        #expect(pattern.policy.cancelAbove == 3_000_000 && pattern.policy.requestBelow == 750_000)
        pattern.learned(bytesPerSecond: 100_000, secondsAhead: 60)
        #expect(pattern.policy.cancelAbove == 6_000_000)
        pattern.learned(bytesPerSecond: 10, secondsAhead: nil)
        #expect(pattern.policy.cancelAbove == 512 << 10)
        pattern.learned(bytesPerSecond: 1e12, secondsAhead: nil)
        #expect(pattern.policy.cancelAbove == 8 << 20)
        pattern.learned(bytesPerSecond: .nan, secondsAhead: nil)
        #expect(pattern.policy.cancelAbove == 8 << 20)
        var fixed = opened()
        fixed.learned(bytesPerSecond: 100_000, secondsAhead: 60)
        #expect(fixed.policy == Self.policy)
    }

    @Test("Late bytes from a cancelled request are buffered until the next request starts")
    func lateBytes() {
        var pattern = opened()
        _ = read(&pattern)
        _ = pattern.received(Data(count: 110), token: 2)
        #expect(pattern.received(Data(count: 10), token: 2) == [])
        #expect(pattern.buffer.end == 120)
        _ = bytes(&pattern, 110)
        let (_, actions) = bytes(&pattern, 5)
        #expect(pattern.buffer.end == 120 && actions == [])
        #expect(pattern.received(Data(count: 10), token: 2) == [])
        #expect(pattern.buffer.end == 120)
    }

    @Test(
        "B25: a seek outside the buffer cancels the old request and sends a new one, in the order set by the policy",
        arguments: [false, true])
    func seekOut(newFirst: Bool) {
        var policy = Self.policy
        policy.requestsBeforeCancelling = newFirst
        var pattern = opened(policy)
        _ = read(&pattern)
        _ = pattern.received(Data(count: 10), token: 2)
        pattern.seek(to: 500)
        let ask = Action.askData(token: 3, offset: 500, length: 500, toEnd: true)
        #expect(read(&pattern) == (newFirst ? [ask, .cancel(token: 2)] : [.cancel(token: 2), ask]))
        #expect(pattern.received(Data(count: 10), token: 2) == [])
        #expect(pattern.received(Data(count: 10), token: 3) == [.wakeReader])
        #expect(pattern.buffer.start == 500)
    }

    @Test("A seek that stays within the buffer, or is not followed by a read, does not cause a request")
    func idleSeeks() {
        var pattern = opened()
        _ = read(&pattern)
        _ = pattern.received(Data(count: 40), token: 2)
        pattern.seek(to: 990)
        pattern.seek(to: 15)
        #expect(bytes(&pattern, 10) == (10, []))
    }

    @Test("If a request finishes early or has no known length, the resource ends after the last received byte")
    func ends() {
        var short = opened()
        _ = read(&short)
        _ = short.received(Data(count: 10), token: 2)
        _ = short.finished(token: 2, information: nil)
        _ = bytes(&short, 10)
        #expect(short.read(limit: 10).0 == .endOfResource)
        var open = opened(length: nil)
        #expect(read(&open) == [.askData(token: 2, offset: 0, length: nil, toEnd: true)])
        _ = open.received(Data(count: 10), token: 2)
        _ = open.finished(token: 2, information: nil)
        #expect(open.endOfResource == 10)
    }

    @Test(
        "A22: without range support, the player sends a single data request from the first byte, and never cancels it")
    func sequential() {
        var pattern = opened(seekable: false)
        #expect(read(&pattern) == [.askData(token: 2, offset: 0, length: 1000, toEnd: true)])
        #expect(pattern.received(Data(count: 500), token: 2) == [.wakeReader])
        #expect(bytes(&pattern, 500) == (500, []))
        #expect(read(&pattern) == [])
    }

    @Test("A failed request wakes the reader and makes later reads fail, but a cancelled request's failure is ignored")
    func failures() {
        var pattern = opened()
        _ = read(&pattern)
        _ = pattern.received(Data(count: 110), token: 2)
        #expect(pattern.failed(token: 2) == [])
        #expect(!pattern.hasFailed)
        #expect(bytes(&pattern, 110) == (110, [.askData(token: 3, offset: 110, length: 890, toEnd: true)]))
        #expect(read(&pattern) == [])
        #expect(pattern.failed(token: 3) == [.wakeReader])
        #expect(pattern.read(limit: 1).0 == .failed)
    }

    @Test("A seek interrupts a waiting read once, and only until the seek reaches the stream")
    func interrupts() {
        var pattern = opened()
        _ = read(&pattern)
        pattern.expectSeek()
        #expect(pattern.interrupt() == (true, [.wakeReader]))
        #expect(pattern.read(limit: 1).0 == .interrupted)
        #expect(read(&pattern) == [])
        #expect(pattern.isReadStuck)
        pattern.seek(to: 300)
        #expect(!pattern.isReadStuck)
        _ = read(&pattern)
        #expect(pattern.interrupt() == (false, []))
    }

    @Test("D47: the start of a queue's next item is loaded with a short request, and loading continues from there")
    func prebuffer() {
        var pattern = LoadingPattern(policy: Self.policy)
        #expect(pattern.prebuffer() == [.requestInformation(token: 1)])
        #expect(pattern.prebuffer() == [])
        let information = ContentInformation(
            contentType: "public.mp3", contentLength: 1000, isByteRangeAccessSupported: true)
        #expect(
            pattern.finished(token: 1, information: information)
                == [.askData(token: 2, offset: 0, length: 50, toEnd: false)])
        _ = pattern.received(Data(count: 50), token: 2)
        _ = pattern.finished(token: 2, information: nil)
        #expect(pattern.endOfResource == 1000)
        #expect(pattern.open() == [])
        #expect(bytes(&pattern, 10) == (10, []))
        #expect(bytes(&pattern, 15) == (15, [.askData(token: 3, offset: 50, length: 950, toEnd: true)]))
    }

    @Test(
        "Closing wakes the reader without cancelling a request; after reopening, reads start at the first byte")
    func closing() {
        var pattern = opened()
        _ = read(&pattern)
        #expect(pattern.close() == [.wakeReader])
        #expect(pattern.read(limit: 1).0 == .failed)
        #expect(pattern.received(Data(count: 10), token: 2) == [])
        #expect(pattern.open() == [])
        #expect(read(&pattern) == [.askData(token: 3, offset: 0, length: 1000, toEnd: true)])
    }

    @Test("After random seeks, reads return correct bytes, and at most one request is open", arguments: 0..<20)
    func random(seed: UInt64) {
        var pattern = opened()
        RandomLoading(steps: 2000, stepsPerSeek: 10, reads: 4).run(
            &pattern, seed: seed,
            check: { pattern, open in
                #expect(open.count <= 1)
                #expect(pattern.buffer.count <= 100 + 40 + 60 + 20)
            })
    }
}

/// A random number generator that produces the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
