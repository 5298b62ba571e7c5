import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization
import Testing

@testable import SpoolHTTP

/// Tests of the exchange between a transport that pushes bytes and a consumer that pulls them. The tests act as the
/// transport.
@Suite(.timeLimit(.minutes(10))) struct ExchangeTests {
    private final class Calls: Sendable {
        let names = Mutex<[String]>([])
        func note(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    private let clock = ManualClock()
    private let calls = Calls()

    private func make() -> Exchange<Data> {
        var configuration = HTTPUpstream.Configuration()
        configuration.clock = clock
        configuration.drainClock = clock
        let exchange = Exchange<Data>("http://h/a", configuration)
        exchange.attach(.init(resume: { [calls] in calls.note("resume") }, cancel: { [calls] in calls.note("cancel") }))
        return exchange
    }

    private func withHead() async throws -> Exchange<Data> {
        let exchange = make()
        exchange.receiveHead(HTTPResponse(status: .ok, headerFields: [.contentLength: "1000000"]))
        _ = try await exchange.head()
        return exchange
    }

    private let big = Data(count: 300 << 10)

    @Test func `The transport pauses at the buffer limit and resumes at half of it`() async throws {
        let exchange = try await withHead()
        let responses = (0..<6).map { _ in exchange.receive(big, count: big.count) }
        #expect(responses == [true, true, true, false, false, false], "1 MiB is reached with the fourth")
        for _ in 0..<4 { _ = try await exchange.next() }
        #expect(calls.all == [], "600 KiB are still buffered")
        _ = try await exchange.next()
        #expect(calls.all == ["resume"])
        #expect(exchange.receive(big, count: big.count))
    }

    @Test func `Bytes received before the end or a failure are delivered first`() async throws {
        for outcome in [.success(()), .failure(UpstreamError(.connectionLost, "x"))] as [Result<Void, UpstreamError>] {
            let exchange = try await withHead()
            _ = exchange.receive(Data([1]), count: 1)
            exchange.finish(outcome)
            #expect(try await exchange.next() == Data([1]))
            if case .success = outcome {
                #expect(try await exchange.next() == nil)
                #expect(try await exchange.next() == nil)
            } else {
                await #expect(throws: UpstreamError.self) { try await exchange.next() }
            }
        }
    }

    @Test("E117: a waiting consumer gets each piece immediately; a busy consumer gets joined pieces of at most 16 KiB")
    func joinsSmallPieces() async throws {
        let exchange = try await withHead()
        let waiting = Task { try await exchange.next() }
        _ = exchange.receive(Data([7]), count: 1)
        #expect(try await waiting.value == Data([7]))
        let bytes = (0..<40_000).map { UInt8(truncatingIfNeeded: $0) }
        #expect(bytes.allSatisfy { exchange.receive(Data([$0]), count: 1) }, "40,000 bytes are no reason to pause")
        exchange.finish(.success(()))
        var pieces: [Data] = []
        while let piece = try await exchange.next() { pieces.append(piece) }
        #expect(pieces.map(\.count) == [16384, 16384, 7232])
        #expect(pieces.joined().elementsEqual(bytes))
    }

    @Test("E117: a large piece between small pieces is delivered as it was received")
    func keepsLargePieces() async throws {
        let exchange = try await withHead()
        for data in [Data([1]), Data([2]), big, Data([3]), Data([4])] { _ = exchange.receive(data, count: data.count) }
        #expect(try await exchange.next() == Data([1, 2]))
        #expect(try await exchange.next() == big)
        #expect(exchange.bufferedBytes == 2)
        #expect(try await exchange.next() == Data([3, 4]))
    }

    @Test func `Closing cancels the transport once`() async throws {
        let exchange = try await withHead()
        exchange.close()
        exchange.close()
        exchange.finish(.failure(UpstreamError(.connectionLost, "late")))
        #expect(calls.all == ["cancel"])
        let error = await #expect(throws: UpstreamError.self) { try await exchange.next() }
        #expect(error?.code == .cancelled)
    }

    @Test func `After a cancellation, bytes in transit are delivered until the body pauses`() async throws {
        let exchange = try await withHead()
        _ = exchange.receive(Data([1]), count: 1)
        let reading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var bytes: [UInt8] = []
            do { while let chunk = try await exchange.next() { bytes += chunk } } catch let error as UpstreamError {
                #expect(error.code == .cancelled)
            }
            return bytes
        }
        // The two sleepers are the idle watchdog and the drain timer.
        for byte in [2, 3] as [UInt8] {
            try await clock.waitForSleepers(2)
            _ = exchange.receive(Data([byte]), count: 1)
            clock.advance(by: .milliseconds(10))
        }
        try await clock.waitForSleepers(2)
        #expect(calls.all == [])
        clock.advance(by: .milliseconds(10))
        #expect(try await reading.value == [1, 2, 3])
        #expect(calls.all == ["cancel"])
    }

    @Test func `After a cancellation, a body that continues is cancelled`() async throws {
        let exchange = try await withHead()
        let reading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            while try await exchange.next() != nil {}
        }
        for _ in 0..<5 {
            try await clock.waitForSleepers(2)
            _ = exchange.receive(Data([1]), count: 1)
            clock.advance(by: .milliseconds(10))
        }
        let error = await #expect(throws: UpstreamError.self) { try await reading.value }
        #expect(error?.code == .cancelled)
        #expect(calls.all == ["cancel"])
    }

    @Test("E471: after a cancellation, at most 1 MiB more is received, even from a fast origin")
    func drainLimit() async throws {
        let exchange = try await withHead()
        let reading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var count = 0
            do { while let chunk = try await exchange.next() { count += chunk.count } } catch is UpstreamError {}
            return count
        }
        try await clock.waitForSleepers(2)
        var received = 0
        var mayContinue = true
        while mayContinue, received < 100 {
            mayContinue = exchange.receive(big, count: big.count)
            received += 1
        }
        #expect(received == 4, "1 MiB is reached with the fourth")
        clock.advance(by: .milliseconds(10))
        #expect(try await reading.value == 4 * big.count)
        #expect(calls.all == ["cancel"])
    }

    @Test func `Closing after the end does not cancel the transport`() async throws {
        let exchange = try await withHead()
        exchange.finish(.success(()))
        exchange.close()
        #expect(calls.all == [])
    }

    @Test func `A transport that attaches after the consumer has closed is cancelled`() {
        let exchange = Exchange<Data>("http://h/a", HTTPUpstream.Configuration())
        exchange.close()
        exchange.attach(.init(resume: {}, cancel: { [calls] in calls.note("cancel") }))
        #expect(calls.all == ["cancel"])
    }

    @Test func `Only time with a waiting reader counts as silence`() async throws {
        let exchange = try await withHead()
        for _ in 0..<20 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(60))
        }
        _ = exchange.receive(Data([1]), count: 1)
        #expect(try await exchange.next() == Data([1]))
        let waiting = Task { try await exchange.next() }
        let error = await #expect(throws: UpstreamError.self) {
            let driver = Task { [clock] in
                while !Task.isCancelled {
                    try await clock.waitForSleepers(1)
                    clock.advance(by: .seconds(4))
                }
            }
            defer { driver.cancel() }
            _ = try await waiting.value
        }
        #expect(error?.code == .timedOut)
        #expect(calls.all == ["cancel"])
    }

    @Test("A body that becomes slower than the minimum rate times out while a reader waits", .timeLimit(.minutes(1)))
    func slow() async throws {
        let exchange = try await withHead()
        _ = exchange.receive(Data(count: 100_000), count: 100_000)
        #expect(try await exchange.next()?.count == 100_000)
        let error = await #expect(throws: UpstreamError.self) {
            for _ in 0..<20 {
                let reading = Task { try await exchange.next() }
                // Only time with a waiting reader counts.
                while !exchange.isAwaited {
                    try Task.checkCancellation()
                    await Task.yield()
                }
                try await clock.waitForSleepers(1)
                clock.advance(by: .milliseconds(3750))
                // The check of the rate has ended when the next one is planned, or when it has ended the exchange.
                while exchange.isAwaited, clock.sleepers == 0 {
                    try Task.checkCancellation()
                    await Task.yield()
                }
                _ = exchange.receive(Data(count: 3000), count: 3000)
                #expect(try await reading.value?.count == 3000)
            }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message == "http://h/a sent fewer than 1000 bytes per second for 30.0 seconds")
        #expect(calls.all == ["cancel"])
    }

    @Test("The body of a redirect is discarded: received bytes are read, and an incomplete body is cancelled")
    func discarded() async throws {
        let silent = try await withHead()
        _ = silent.receive(Data([1]), count: 1)
        let discarding = Task { await silent.discard() }
        try await clock.waitForSleepers(2)
        clock.advance(by: .milliseconds(10))
        await discarding.value
        #expect(calls.all == ["cancel"])
        let complete = try await withHead()
        complete.finish(.success(()))
        await complete.discard()
        #expect(calls.all == ["cancel"], "a body that has ended leaves its connection as it is")
    }
}
