import Foundation
import Testing

@testable import Spool

@Suite("Events for a slow listener", .timeLimit(.minutes(10)))
struct EventQueueTests {
    private let queue = EventQueue {}
    private let key = CacheKey("a")

    private func send(_ kind: CacheEvent.Kind) { queue.append(CacheEvent(key: key, redactedURL: "a", kind: kind)) }

    private func taken() async -> [CacheEvent.Kind] {
        queue.finish()
        var kinds: [CacheEvent.Kind] = []
        while let event = await queue.next() { kinds.append(event.kind) }
        return kinds
    }

    @Test("10,000 request events do not displace events of other kinds, and the newest request events stay in order")
    func kinds() async {
        send(.failed(CacheError(.originErrorStatus, "no")))
        for lower in 0..<10_000 as Range<Int64> { send(.requested(lower: lower, upper: nil)) }
        send(.completed)
        let kinds = await taken()
        #expect(kinds.count == EventQueue.limit + 2)
        guard case .failed = kinds.first, case .completed = kinds.last else {
            Issue.record("the failure or the end is missing")
            return
        }
        let lowers = kinds.compactMap { if case .requested(let lower, _) = $0 { lower } else { nil } }
        #expect(lowers == Array(10_000 - Int64(EventQueue.limit)..<10_000))
    }

    @Test(
        "Events for adjacent stored ranges are joined, unless an event of a different kind or resource is between them")
    func joined() async {
        for lower in 0..<10_000 as Range<Int64> { send(.stored(lower..<lower + 1)) }
        send(.stored(20_000..<20_001))
        send(.requestCancelled(at: 20_001))
        send(.stored(20_001..<20_002))
        queue.append(CacheEvent(key: CacheKey("b"), redactedURL: "b", kind: .stored(20_002..<20_003)))
        let ranges = await taken().map { kind -> Range<Int64> in
            if case .stored(let range) = kind { range } else { 0..<0 }
        }
        #expect(
            ranges == [
                0..<10_000, 20_000..<20_001, 0..<0, 20_001..<20_002, 20_002..<20_003,
            ] as [Range<Int64>])
    }

    @Test("A waiting listener gets the next event, and `nil` after its task is cancelled")
    func waiting() async {
        let first = Task { await queue.next()?.kind }
        send(.completed)
        guard case .completed = await first.value else {
            Issue.record("no event was received")
            return
        }
        let second = Task { await queue.next() }
        second.cancel()
        #expect(await second.value == nil)
    }
}
