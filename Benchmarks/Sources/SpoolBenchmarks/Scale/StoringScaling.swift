import Foundation
import Spool
import Synchronization

extension Benchmark {
    /// The cost of storing a chunk while many readers wait for other bytes.
    static let scaleStoring = Benchmark(
        name: "scale-storing",
        summary: "µs for each chunk of 16 KiB that is stored for one reader, while 10 to 1,600 others wait elsewhere"
    ) {
        let folder = try TemporaryFolder("landing")
        let origin = StallingOrigin()
        var configuration = MediaCache.Configuration()
        // One request fetches all bytes, so that only storing is measured, without requests.
        configuration.readAhead.initialRequestSize = StallingOrigin.nearLength
        configuration.readAhead.maximumRequestSize = StallingOrigin.nearLength
        configuration.readAhead.maximumReadAhead = 2 * StallingOrigin.nearLength
        let cache = MediaCache(directory: folder.url, upstream: origin, configuration: configuration)
        try await cache.open()
        var number = 0
        let store = { (readers: Int) in
            number += 1
            return try await StoringRun(cache: cache, origin: origin, number: number).time(readersElsewhere: readers)
        }

        var table = Table("readers waiting elsewhere", "Spool, µs", "with 10, µs", "more than with 10, µs", "goal")
        var goals: [Goal] = []
        for readers in [100, 400, 1600] {
            let pair = try await Pair.alternating(rounds: 5) {
                try await store(readers)
            } peer: {
                try await store(10)
            }
            let more = median(zip(pair.spool, pair.peer).map { $0 - $1 })
            let (time, few) = (median(pair.spool), median(pair.peer))
            table.add(
                figure(Double(readers)), figure(time), figure(few), figure(more), readers == 1600 ? "≤ 20" : "")
            guard readers == 1600 else { continue }
            goals.append(
                Goal(
                    name: "storing a chunk with 1,600 readers elsewhere, vs. 10", spool: "\(figure(time)) µs",
                    peer: "\(figure(few)) µs", ratio: "+ \(figure(more)) µs", goal: "≤ 20 µs more", isMet: more <= 20))
        }
        await cache.close()
        table.note =
            "2,048 chunks per round: writing, checksums and delivery to one reader. The others wait at "
            + "four distant offsets whose bytes are never received."
        return Report(tables: [table], goals: goals)
    }
}

/// A resource whose first bytes are stored while readers wait for other bytes.
private struct StoringRun {
    let media: MediaResource
    let cache: MediaCache
    let origin: StallingOrigin

    init(cache: MediaCache, origin: StallingOrigin, number: Int) throws {
        self.cache = cache
        self.origin = origin
        media = cache.media(for: try StoredMedia.url("landing/\(number)"))
    }

    /// Returns the time for each chunk, in microseconds.
    func time(readersElsewhere count: Int) async throws -> Double {
        // The version must be known before readers can wait for distant bytes.
        for try await chunk in media.reader(.bytes(0..<65_536)) { blackHole(chunk) }
        let readers = (0..<count).map { number in
            // All readers wait within one block at each of four positions, so that four requests serve them and one
            // more is possible.
            let place = StallingOrigin.nearLength * Int64(1 + number % 4) * 4
            return media.reader(.bytes(place + Int64(number / 4) * 128..<place + 65_536))
        }
        let begun = Count()
        let time = try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in readers {
                group.addTask {
                    begun.increase()
                    _ = try await reader.next()
                }
            }
            // Whether a reader is waiting can't be observed, so the benchmark pauses briefly after all readers have
            // started.
            while begun.value < count { try await Task.sleep(for: .milliseconds(10)) }
            try await Task.sleep(for: .milliseconds(300))
            origin.meter.reset()
            var stored: Int64 = 65_536
            let near = media.reader(.bytes(stored..<StallingOrigin.nearLength))
            let limit = Task {
                try await Task.sleep(for: .seconds(60))
                near.cancel()
            }
            for try await chunk in near { stored += Int64(chunk.data.count) }
            limit.cancel()
            guard stored == StallingOrigin.nearLength else {
                throw BenchmarkError("only \(stored) bytes were stored within a minute while \(count) readers waited")
            }
            for reader in readers { reader.cancel() }
            group.cancelAll()
            while (try? await group.next()) != nil {}
            return origin.meter.microsecondsPerChunk
        }
        try await cache.remove(media.key)
        return time
    }
}

/// A counter that many tasks increment.
private final class Count: Sendable {
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .relaxed) }

    func increase() { number.add(1, ordering: .relaxed) }
}
