#if Metrics
import Foundation
import MetricsTestKit
import SpoolTesting
import Testing

@testable import Spool

@Suite("Counts reported through swift-metrics", .timeLimit(.minutes(10)))
struct MetricsTests {
    @Test("Resources that are not stored are counted by the code of the reason")
    func notCached() async throws {
        let metrics = TestMetrics()
        let disk = FaultyFileSystem()
        let stage = try MemoryStage(["/a": .pattern(200_000)], disk: disk) { $0.instruments = [.metrics(metrics)] }
        try await stage.session { cache in
            try await cache.open()
            disk.fail([.write], with: .error(.ENOSPC))
            _ = try await cache.media(for: stage.url()).data(in: 0..<1000)
        }
        let counter = try metrics.expectCounter("spool_not_cached_total", [("code", "storage")])
        #expect(counter.totalValue == 1)
    }

    @Test("Bytes, requests, first bytes, evictions and errors are counted; meters of work in progress return to 0")
    func counts() async throws {
        let metrics = TestMetrics()
        let song = PatternBytes(seed: 1, length: 200_000)
        let stage = try MemoryStage(["/a": OriginResource(.pattern(song)), "/gone": .pattern(10, .status(404))]) {
            $0.instruments = [.metrics(metrics)]
        }
        try await stage.session { cache in
            for _ in 0..<2 {
                try await cache.media(for: stage.url()).check(.all, song)
                await cache.waitUntilIdle()
            }
            _ = try await cache.media(for: stage.url("/gone")).failure()
            try await cache.evict(to: 0)
        }
        func count(_ name: String, _ dimensions: [(String, String)] = []) throws -> Int64 {
            try metrics.expectCounter("spool_" + name, dimensions).totalValue
        }
        #expect(try count("served_bytes_total") == 400_000)
        #expect(try count("hit_bytes_total") == 200_000)
        #expect(try count("origin_bytes_total") >= 200_000)
        #expect(try count("origin_requests_total") == Int64(stage.origin.log.exchanges("/a").count + 1))
        #expect(try count("evictions_total") == 1)
        #expect(try count("evicted_bytes_total") == 200_000)
        #expect(try count("errors_total", [("code", "originErrorStatus")]) == 1)
        for result in ["hit", "miss"] {
            let timer = try metrics.expectTimer("spool_first_byte_seconds", [("result", result)])
            #expect(timer.values.count == 1)
        }
        for name in ["open_readers", "origin_requests_in_flight"] {
            #expect(try metrics.expectMeter("spool_" + name).lastValue == 0)
        }
    }
}
#endif
