import HTTPTypes
import SpoolTesting
import Synchronization
import Testing

@testable import Spool

@Suite("Reports to instruments", .timeLimit(.minutes(10)))
struct InstrumentTests {
    private static let song = PatternBytes(seed: 1, length: 200_000)

    @Test("During a read from the origin and a read from the cache, each byte, request and reader is reported once")
    func plays() async throws {
        let log = InstrumentLog()
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.song))]) { $0.instruments = [log.instrument] }
        try await stage.session { cache in
            for _ in 0..<2 {
                try await cache.media(for: stage.url()).check(.all, Self.song)
                await cache.waitUntilIdle()
            }
            _ = await cache.preload([MediaSource(url: stage.url())], .entire).first?.finished()
        }
        let sums = log.sums
        #expect(sums.firstBytes == [false, true])
        #expect(sums.served == 600_000 && sums.stored == 400_000 && sums.received == 200_000)
        #expect(sums.requestsSent == stage.origin.log.exchanges("/a").count && sums.requestsSent > 0)
        #expect(sums.begun == sums.requestsSent && sums.running.isEmpty && sums.readers == 0)
        #expect(sums.events["completed"] == 1)
    }

    @Test("Failures and evictions are reported to instruments")
    func failures() async throws {
        let log = InstrumentLog()
        let stage = try MemoryStage(["/a": OriginResource(.pattern(Self.song)), "/gone": .pattern(10, .status(404))]) {
            $0.instruments = [log.instrument]
        }
        try await stage.session { cache in
            _ = try await cache.media(for: stage.url("/gone")).failure()
            try await cache.media(for: stage.url()).check(.all, Self.song)
            await cache.waitUntilIdle()
            try await cache.evict(to: 0)
        }
        let sums = log.sums
        #expect(sums.events["failed"] == 1 && sums.events["evicted"] == 1)
        #expect(sums.firstBytes == [false] && sums.readers == 0 && sums.running.isEmpty)
    }

    @Test("The events of a resource do not include events of other resources")
    func ownEvents() async throws {
        let stage = try MemoryStage([
            "/a": OriginResource(.pattern(Self.song)), "/b": OriginResource(.pattern(Self.song)),
        ])
        let cache = try await stage.open()
        let media = cache.media(for: stage.url("/a"))
        let events = media.events()
        try await stage.flowing {
            try await cache.media(for: stage.url("/b")).check(.all, Self.song)
            try await media.check(.all, Self.song)
            await cache.waitUntilIdle()
            #expect(try await media.storedHeaderFields()?[.contentType] != nil)
            try await cache.evict(to: 0)
            await cache.close()
        }
        var kinds: Set<String> = []
        for await event in events {
            #expect(event.key == media.key)
            kinds.insert(InstrumentLog.name(of: event.kind))
        }
        #expect(kinds.isSuperset(of: ["requested", "stored", "completed"]))
    }
}

/// The sums of the values that an instrument receives.
final class InstrumentLog: Sendable {
    struct Sums {
        var firstBytes: [Bool] = []
        var served: Int64 = 0
        var stored: Int64 = 0
        var received: Int64 = 0
        var requestsSent = 0
        var begun = 0
        var readers = 0
        var running: Set<InstrumentEvent.TransferName> = []
        var events: [String: Int] = [:]
    }

    private let state = Mutex(Sums())

    var sums: Sums { state.withLock { $0 } }

    var instrument: CacheInstrument { CacheInstrument { [self] in note($0) } }

    private func note(_ moment: InstrumentEvent) {
        state.withLock { sums in
            switch moment {
            case .readerOpened: sums.readers += 1
            case .readerClosed: sums.readers -= 1
            case .firstBytes(let duration, let isStored, _):
                if duration >= .zero { sums.firstBytes.append(isStored) }
            case .served(let bytes, let stored):
                (sums.served, sums.stored) = (sums.served + bytes, sums.stored + stored)
            case .requestSent: sums.requestsSent += 1
            case .received(let bytes): sums.received += bytes
            case .transferBegan(let transfer, _):
                sums.begun += 1
                sums.running.insert(transfer)
            case .transferEnded(let transfer): sums.running.remove(transfer)
            case .event(let event): sums.events[Self.name(of: event.kind), default: 0] += 1
            }
        }
    }

    static func name(of kind: CacheEvent.Kind) -> String {
        String("\(kind)".prefix { $0 != "(" })
    }
}
