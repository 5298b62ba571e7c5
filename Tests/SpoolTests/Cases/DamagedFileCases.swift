import Foundation
import SpoolTesting
import Testing

@testable import Spool

/// CASE C, 34: damaged media files.
@Suite(.timeLimit(.minutes(10)))
struct DamagedFileCases {
    @Test("C34: a file whose blocks are all damaged is fetched again with at most ten requests, and each byte once")
    func damagedAllOver() async throws {
        let film = PatternBytes(seed: 1, length: 8_000_000)
        let stage = try MemoryStage(["/a": .pattern(8_000_000)])
        try await stage.session { cache in
            try await cache.media(for: stage.url()).check(.all, film, covers: 0..<film.length)
        }
        let path = try #require(
            mediaFiles(in: stage.directory).first { path in
                ((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0) > 0
            })
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        for offset in stride(from: 100, to: film.length, by: 65_536) {
            try file.seek(toOffset: UInt64(offset))
            try file.write(contentsOf: Data([1, 2, 3, 4]))
        }
        try file.close()
        stage.origin.log.clear()
        // The clock does not advance, so the size of a request does not depend on the reader's pace.
        try await stage.session(isFlowing: false) { cache in
            try await cache.media(for: stage.url()).check(.all, film, covers: 0..<film.length)
        }
        let asked = stage.origin.log.exchanges.map { $0.requestedRange ?? "all" }
        #expect(asked.count <= 10, "\(asked)")
        #expect(stage.origin.log.bytesSent("/a") == film.length)
        try await stage.checkComplete(film)
    }
}
