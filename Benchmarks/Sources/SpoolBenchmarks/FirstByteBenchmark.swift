import Foundation
import HTTPTypes
import Spool
import SpoolHTTP

extension Benchmark {
    /// The time to the first byte of media that is not cached, compared with a direct request to the origin.
    static let firstByte = Benchmark(
        name: "first-byte",
        summary: "ms from the request to the first bytes of a resource that is not cached; lower is better"
    ) {
        let origin = try await LocalOrigin()
        _ = try origin.makeFile("song.bin", byteCount: 1 << 20)
        let folder = try TemporaryFolder("first-byte")
        let cache = MediaCache(directory: folder.url, upstream: HTTPUpstream.standard(), configuration: .unlimited)
        try await cache.open()
        let client = HTTPUpstream.standard()
        var number = 0

        // The query makes each URL a separate resource; nginx serves the same file for all of them.
        let pair = try await Pair.alternating(rounds: 400) {
            number += 1
            let media = cache.media(for: try origin.url("song.bin", query: "n=\(number)"))
            let reader = media.reader()
            let time = try await seconds { blackHole(try await reader.next()) }
            for try await chunk in reader { blackHole(chunk) }
            return time * 1000
        } peer: {
            var request = UpstreamRequest(url: try origin.url("song.bin", query: "n=\(number)"))
            request.headerFields[.range] = "bytes=0-1048575"
            let begin = ContinuousClock.now
            var body = try await client.open(request).body.makeAsyncIterator()
            blackHole(try await body.next())
            let time = (ContinuousClock.now - begin) / .milliseconds(1)
            while let chunk = try await body.next() { blackHole(chunk) }
            return time
        }
        await cache.close()

        let (spool, peer) = (median(pair.spool), median(pair.peer))
        var table = Table("way", "median", "90 of 100", "99 of 100")
        table.add("Spool, a miss", decimal(spool), decimal(part(0.9, pair.spool)), decimal(part(0.99, pair.spool)))
        table.add(
            "the HTTP client alone", decimal(peer), decimal(part(0.9, pair.peer)), decimal(part(0.99, pair.peer)))
        table.note = "400 requests each, alternating, over persistent connections to nginx on loopback."
        let goal = peer * 1.1 + 1
        return Report(
            tables: [table],
            goals: [
                Goal(
                    name: "first byte on a miss, vs. the HTTP client", spool: "\(decimal(spool)) ms",
                    peer: "\(decimal(peer)) ms", ratio: decimal(pair.ratio),
                    goal: "≤ 1.1 × + 1 ms = \(decimal(goal)) ms", isMet: spool <= goal)
            ])
    }
}

/// Returns a quantile: the value below which a fraction of `part` of all values lies.
private func part(_ part: Double, _ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
}
