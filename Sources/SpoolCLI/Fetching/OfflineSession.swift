import ByteRanges
import Spool

/// Brings media of a set, and says of each one when it is over.
struct OfflineSession {
    private let cache: MediaCache
    private let set: String
    private let isQuiet: Bool

    /// - Parameter isQuiet: Whether nothing is written to standard output.
    init(_ cache: MediaCache, set: String, isQuiet: Bool) {
        self.cache = cache
        self.set = set
        self.isQuiet = isQuiet
    }

    /// Adds these, or goes on with what the set has if there are none.
    ///
    /// - Returns: Why some are not complete.
    /// - Throws: `CancellationError`; `CacheError` where nothing can be added.
    func run(_ sources: [MediaSource], keepingQuery: Bool) async throws -> [any Error] {
        var failures: [any Error] = []
        var sources = sources
        var keepingQuery = keepingQuery
        if sources.isEmpty {
            guard let found = try await cache.downloads.set(set) else { throw OfflineReport.noSet(set) }
            // As they are: what was written down stays so.
            keepingQuery = true
            sources = found.items.compactMap { $0.url.map { MediaSource(url: $0) } }
            failures = found.missing.filter { $0.url == nil }.map { item in
                CacheError(.incomplete, "\(item.address): to go on, give its URL again: its query was not written down")
            }
        }
        let downloads = try await cache.downloads.add(sources, to: set, remembersQuery: keepingQuery)
        let line = LiveLine { columns in
            let landed = downloads.reduce(0) { $0 + $1.state.landedByteCount }
            let ended = downloads.count { $0.state.phase.isEnd }
            let text = "\(ended) of \(downloads.count.counted("file"))  \(ByteCount(bytes: landed).text)"
            return String(text.prefix(max(0, columns - 1)))
        }
        do {
            for download in downloads {
                var outcome = PreloadOutcome(await download.finished())
                try Task.checkCancellation()
                try await outcome.addStream(of: download.source, .whole, in: cache, jobs: 4)
                if let error = outcome.error { failures.append(error) }
                if !isQuiet { try Output.line(PreloadReport(download.source, outcome).text) }
            }
            await line.end()
        } catch {
            await line.end()
            throw error
        }
        return failures
    }
}
