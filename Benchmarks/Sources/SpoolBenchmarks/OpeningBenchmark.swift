import Foundation
import GRDB
import Spool

extension Benchmark {
    /// Opening a cache that holds very much, beside one that holds next to nothing.
    static let opening = Benchmark(
        name: "opening",
        summary: "ms to open a cache directory of 100,000 resources, and one of 10; lower is better"
    ) {
        let few = try await Stock(resources: 10)
        let many = try await Stock(resources: 100_000)
        let open = try await Pair.alternating(
            rounds: 31, spool: { try await many.open() }, peer: { try await few.open() })
        let play = try await Pair.alternating(
            rounds: 31, spool: { try await many.open(andRead: true) }, peer: { try await few.open(andRead: true) })
        let unclean = try await Pair.alternating(
            rounds: 5, spool: { try await many.openAfterUncleanEnd() }, peer: { try await few.openAfterUncleanEnd() })

        var table = Table("what", "100,000 resources", "10 resources", "ratio")
        for (name, pair) in [
            ("opening", open), ("opening and reading one resource's first bytes", play),
            ("opening after an unclean end", unclean),
        ] {
            table.add(name, decimal(median(pair.spool)), decimal(median(pair.peer)), decimal(pair.ratio))
        }
        table.note = "After an unclean end every file in the folder is looked at once; this is not part of the promise."
        let spool = median(open.spool)
        return Report(
            tables: [table],
            promises: [
                Promise(
                    name: "opening 100,000 resources, beside 10", spool: "\(decimal(spool)) ms",
                    peer: "\(decimal(median(open.peer))) ms", ratio: decimal(open.ratio), goal: "≤ 2, or ≤ 20 ms",
                    isMet: open.ratio <= 2 || spool <= 20)
            ])
    }
}

/// A cache directory with one resource that the engine stored, and copies of its records under other keys.
private struct Stock {
    private let folder: TemporaryFolder
    private let url: URL
    private let length: Int64 = 256 << 10

    init(resources: Int) async throws {
        folder = try TemporaryFolder("opening")
        guard let url = URL(string: "http://localhost/media") else { throw BenchmarkError("no address") }
        self.url = url
        let cache = try await MediaCache(directory: folder.url, upstream: MemoryOrigin(length: length))
        for try await chunk in cache.media(for: url).reader() { blackHole(chunk) }
        await cache.close()
        try multiply(to: resources)
    }

    /// Copies the one resource's rows, so that there are `count` of them, each with its blocks and a (short) file.
    private func multiply(to count: Int) throws {
        let database = try DatabaseQueue(path: folder.file("catalog.sqlite").path)
        let identifiers = try database.write { db in
            try db.execute(
                sql: """
                    CREATE TEMP TABLE copy AS WITH RECURSIVE number (n) AS (
                        VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < \(count - 1))
                        SELECT n + 1 AS id, lower(hex(randomblob(32))) AS key, randomblob(16) AS identifier FROM number;
                    INSERT INTO resource SELECT copy.id, copy.key, url || copy.id, contentType, pinned, createdAt,
                        lastUsedAt FROM copy, resource WHERE resource.id = 1;
                    INSERT INTO generation SELECT copy.id, copy.id, copy.identifier, length, version, fields,
                        storedBytes, tidyEpoch FROM copy, generation WHERE generation.id = 1;
                    INSERT INTO block SELECT copy.id, idx, block.length, seal FROM copy, block WHERE generation = 1;
                    UPDATE setting SET value = (SELECT sum(storedBytes) FROM generation) WHERE name = 'storedBytes';
                    """)
            return try String.fetchAll(db, sql: "SELECT lower(hex(identifier)) FROM copy")
        }
        try database.close()
        for shard in Set(identifiers.map { $0.prefix(2) }) {
            try FileManager.default.createDirectory(
                at: folder.file("media/\(shard)"), withIntermediateDirectories: true)
        }
        for identifier in identifiers {
            try Data().write(to: folder.file("media/\(identifier.prefix(2))/\(identifier).media"))
        }
    }

    /// Milliseconds to open the directory, and to read the first bytes of a resource in it if `reads`.
    func open(andRead reads: Bool = false) async throws -> Double {
        let begin = ContinuousClock.now
        let cache = try await MediaCache(directory: folder.url, upstream: MemoryOrigin(length: length))
        if reads {
            let media = cache.media(for: url)
            blackHole(try await media.reader().next())
        }
        let time = (ContinuousClock.now - begin) / .milliseconds(1)
        guard cache.notices.isEmpty else { throw BenchmarkError("opening mended: \(cache.notices)") }
        await cache.close()
        return time
    }

    /// As ``open(andRead:)``, of a directory whose last user was killed.
    func openAfterUncleanEnd() async throws -> Double {
        try Data("process 1 (killed)\n".utf8).write(to: folder.file("lock"))
        return try await open()
    }
}
