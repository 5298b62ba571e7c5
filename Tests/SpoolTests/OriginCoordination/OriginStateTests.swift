import Foundation
import SpoolTesting
import Synchronization
import Testing

@testable import Spool
@testable import SpoolScheduling

@Suite("Connections to an origin", .timeLimit(.minutes(10)))
struct OriginStateTests {
    @Test("E468: a failure without a range has no effect on range requests after two minutes")
    func temporaryFailure() {
        let origin = OriginState(connectionLimit: 1)
        let failure = SimplerRequest.Failure.status(500)
        #expect(origin.mayRejectRanges(by: failure, at: .zero))
        origin.record(failure, succeedsWithoutRange: false, at: .seconds(10))
        #expect(!origin.mayRejectRanges(by: failure, at: .seconds(129)))
        #expect(origin.mayRejectRanges(by: .status(404), at: .seconds(129)))
        #expect(origin.mayRejectRanges(by: failure, at: .seconds(130)))
    }

    @Test("The number of connections is limited, and waiting requests get connections in order")
    func limited() async throws {
        let origin = OriginState(connectionLimit: 1)
        let first = try await origin.connect(.playback)
        let order = Order<Int>()
        let second = Task {
            let connection = try await origin.connect(.playback)
            order.add(2)
            connection.end()
        }
        while origin.waitingCount < 1 { await Task.yield() }
        let third = Task {
            let connection = try await origin.connect(.playback)
            order.add(3)
            connection.end()
        }
        while origin.waitingCount < 2 { await Task.yield() }
        #expect(order.values.isEmpty)
        first.end()
        try await second.value
        try await third.value
        #expect(order.values == [2, 3])
        #expect(origin.activeCount == 0)
    }

    @Test("A wait for a connection fails if none is released in time, and continues while connections are released")
    func waitLimit() async throws {
        let clock = ManualClock()
        var cacheClock = CacheClock(clock: clock)
        cacheClock.networkSleep = cacheClock.sleep
        let waitLimit = OriginState.WaitLimit(.playback, RetryPolicy(), cacheClock)
        #expect(waitLimit.limit == .seconds(30))
        let origin = OriginState(connectionLimit: 2)
        let (first, second) = (try await origin.connect(.playback), try await origin.connect(.playback))
        let waiting = Task { try await origin.connect(.playback, waitLimit) }
        try await clock.waitForSleepers(1)
        while origin.waitingCount < 1 { await Task.yield() }
        // A second request starts waiting.
        let preload = Task { try await origin.connect(.preload, waitLimit) }
        try await clock.waitForSleepers(2)
        first.end()
        let connection = try await waiting.value
        clock.advance(by: .seconds(31))
        try await clock.waitForSleepers(1)
        #expect(origin.waitingCount == 1)
        clock.advance(by: .seconds(31))
        let error = await #expect(throws: OriginState.AllConnectionsBusy.self) { try await preload.value }
        #expect(error?.limit == .seconds(30))
        #expect(origin.waitingCount == 0)
        second.end()
        connection.end()
        #expect(origin.activeCount == 0)
    }

    @Test("Players are served before preloads that have waited longer")
    func priorities() async throws {
        let origin = OriginState(connectionLimit: 1)
        let first = try await origin.connect(.playback)
        let order = Order<Priority>()
        let preload = Task {
            let connection = try await origin.connect(.preload)
            order.add(.preload)
            connection.end()
        }
        while origin.waitingCount < 1 { await Task.yield() }
        let playback = Task {
            let connection = try await origin.connect(.playback)
            order.add(.playback)
            connection.end()
        }
        while origin.waitingCount < 2 { await Task.yield() }
        first.end()
        try await playback.value
        try await preload.value
        #expect(order.values == [.playback, .preload])
    }

    @Test("Preloads leave one connection free for players")
    func preloadsLeaveOne() async throws {
        let origin = OriginState(connectionLimit: 3)
        let preloads = [try await origin.connect(.preload), try await origin.connect(.preload)]
        let order = Order<Int>()
        let third = Task {
            let connection = try await origin.connect(.preload)
            order.add(3)
            connection.end()
        }
        while origin.waitingCount < 1 { await Task.yield() }
        try await origin.connect(.playback).end()
        #expect(order.values.isEmpty)
        preloads[0].end()
        try await third.value
        preloads[1].end()
        #expect(origin.activeCount == 0)
    }

    @Test("E67: a connection that back-pressure pauses is not counted until it resumes")
    func paused() async throws {
        let origin = OriginState(connectionLimit: 1)
        let held = try await origin.connect(.playback)
        held.pause()
        held.pause()
        #expect(origin.activeCount == 0)
        let other = try await origin.connect(.playback)
        held.resume()
        #expect(origin.activeCount == 2)
        other.end()
        held.end()
        held.end()
        #expect(origin.activeCount == 0)
    }

    @Test("E116: long responses without range support count toward a separate limit, not the connection limit")
    func streams() async throws {
        let origin = OriginState(connectionLimit: 2)
        var streams: [OriginConnection] = []
        while let connection = origin.connectIfAvailable(.playback, now: { .zero }) {
            connection.recordStream()
            connection.recordStream()
            streams.append(connection)
        }
        #expect(streams.count == OriginState.streamLimit + 2)
        // A paused stream and a finished stream each release one connection, and only once.
        streams[0].pause()
        streams[1].end()
        streams[1].end()
        let others = [
            origin.connectIfAvailable(.playback, now: { .zero }), origin.connectIfAvailable(.playback, now: { .zero }),
        ]
        #expect(others.allSatisfy { $0 != nil })
        #expect(origin.connectIfAvailable(.playback, now: { .zero }) == nil)
        // A stream that resumes is not delayed, and counts as before.
        streams[0].resume()
        others[0]?.end()
        #expect(origin.connectIfAvailable(.playback, now: { .zero }) == nil)
        others[1]?.end()
        #expect(origin.connectIfAvailable(.playback, now: { .zero }) != nil)
        for stream in streams { stream.end() }
        #expect(origin.activeCount == 0)
    }

    @Test("E116: a response that turns out to be long and without range support lets the next waiting transfer connect")
    func streamGivesWay() async throws {
        let origin = OriginState(connectionLimit: 1)
        let first = try await origin.connect(.playback)
        let second = Task { try await origin.connect(.playback) }
        while origin.waitingCount < 1 { await Task.yield() }
        first.recordStream()
        try await second.value.end()
        first.end()
        #expect(origin.activeCount == 0)
    }

    @Test("E179: a player that has waited for two seconds gets an extra connection, up to a limit")
    func slowResponses() async throws {
        let clock = ManualClock()
        var cacheClock = CacheClock(clock: clock)
        cacheClock.networkSleep = cacheClock.sleep
        let waitLimit = OriginState.WaitLimit(.playback, RetryPolicy(), cacheClock)
        let origin = OriginState(connectionLimit: 2)
        var slow = [try await origin.connect(.playback), try await origin.connect(.playback)]
        func wait() async throws -> Task<OriginConnection, any Error> {
            let waiting = Task { try await origin.connect(.playback, waitLimit) }
            while origin.waitingCount < 1 { await Task.yield() }
            try await clock.waitForSleepers(1)
            return waiting
        }
        for _ in 0..<OriginState.streamLimit {
            let waiting = try await wait()
            clock.advance(by: OriginState.slowTime)
            slow.append(try await waiting.value)
        }
        #expect(origin.activeCount == OriginState.streamLimit + 2)
        let rejected = try await wait()
        for _ in 0..<15 as Range<Int> {
            try await clock.waitForSleepers(1)
            clock.advance(by: OriginState.slowTime)
        }
        await #expect(throws: OriginState.AllConnectionsBusy.self) { try await rejected.value }
        for connection in slow { connection.end() }
        #expect(origin.activeCount == 0)
        // Two more connections count toward the limit again.
        let others = [
            origin.connectIfAvailable(.playback, now: { .zero }), origin.connectIfAvailable(.playback, now: { .zero }),
        ]
        #expect(others.allSatisfy { $0 != nil } && origin.connectIfAvailable(.playback, now: { .zero }) == nil)
    }

    @Test("E179: a waiting player does not get an extra connection while other connections are being released")
    func responsesThatEnd() async throws {
        let clock = ManualClock()
        var cacheClock = CacheClock(clock: clock)
        cacheClock.networkSleep = cacheClock.sleep
        let waitLimit = OriginState.WaitLimit(.playback, RetryPolicy(), cacheClock)
        let origin = OriginState(connectionLimit: 2)
        let (first, second) = (try await origin.connect(.playback), try await origin.connect(.playback))
        let earlier = Task { try await origin.connect(.playback) }
        while origin.waitingCount < 1 { await Task.yield() }
        let waiting = Task { try await origin.connect(.playback, waitLimit) }
        while origin.waitingCount < 2 { await Task.yield() }
        try await clock.waitForSleepers(1)
        first.end()
        let connection = try await earlier.value
        clock.advance(by: OriginState.slowTime)
        try await clock.waitForSleepers(1)
        #expect(origin.waitingCount == 1 && origin.activeCount == 2)
        second.end()
        try await waiting.value.end()
        connection.end()
    }

    @Test("A request that is cancelled while it waits does not get a connection, and other requests keep their order")
    func cancelled() async throws {
        let origin = OriginState(connectionLimit: 1)
        let first = try await origin.connect(.playback)
        let given = Task { try await origin.connect(.playback).end() }
        while origin.waitingCount < 1 { await Task.yield() }
        given.cancel()
        await #expect(throws: CancellationError.self) { try await given.value }
        first.end()
        try await origin.connect(.playback).end()
        #expect(origin.activeCount == 0)
    }

    @Test("A connection is available again after its object is released without a call to end()")
    func dropped() async throws {
        let origin = OriginState(connectionLimit: 1)
        do { _ = try await origin.connect(.playback) }
        try await origin.connect(.playback).end()
    }
}

/// The elements in the order in which they were added.
private final class Order<Element: Sendable>: Sendable {
    private let state = Mutex<[Element]>([])
    var values: [Element] { state.withLock { $0 } }
    func add(_ element: Element) { state.withLock { $0.append(element) } }
}
