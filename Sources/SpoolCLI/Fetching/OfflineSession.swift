#if Tools
import ByteRanges
import HTTPRanges
import Spool
import SpoolProxy

/// A session that downloads the media of a set, and prints a line for each finished item.
struct OfflineSession {
    private let cache: MediaCache
    private let set: String
    private let isQuiet: Bool

    /// Creates a session.
    ///
    /// - Parameter isQuiet: Whether to suppress the lines on standard output.
    init(_ cache: MediaCache, set: String, isQuiet: Bool) {
        self.cache = cache
        self.set = set
        self.isQuiet = isQuiet
    }

    /// Adds the sources to the set, or resumes the whole set if `sources` is empty. A new item is removed again if the
    /// extension of its URL is `m3u8` or `mpd`, but the document is not a playlist or manifest.
    ///
    /// - Returns: The errors of incomplete items.
    /// - Throws: `CancellationError`. `CacheError` if no item can be added.
    func run(_ sources: [MediaSource], savingQuery: Bool) async throws -> [any Error] {
        var failures: [any Error] = []
        var sources = sources
        var savingQuery = savingQuery
        if sources.isEmpty {
            guard let found = try await cache.downloads.set(set) else { throw OfflineReport.noSet(set) }
            // Queries that are already recorded remain unchanged.
            savingQuery = true
            sources = found.items.compactMap { $0.url.map { MediaSource(url: $0) } }
            failures = found.missing.filter { $0.url == nil }.map { item in
                AdvisedError(
                    .incomplete, "\(item.redactedURL): to resume this download, give its URL again", advice: nil)
            }
        }
        let previous = Set(try await cache.downloads.set(set)?.items.map(\.key) ?? [])
        let downloads = try await cache.downloads.add(sources, to: set, remembersQuery: savingQuery)
        let line = LiveLine { columns in
            let storedBytes = downloads.reduce(0) { $0 + $1.state.storedByteCount }
            let ended = downloads.count { $0.state.phase.isFinal }
            let text = "\(ended) of \(downloads.count.counted("file"))  \(ByteCount(bytes: storedBytes).text)"
            return String(text.prefix(max(0, columns - 1)))
        }
        do {
            for download in downloads {
                var outcome = PreloadOutcome(await download.finished())
                try Task.checkCancellation()
                try await outcome.addStream(of: download.source, .whole, in: cache, jobs: 4)
                if let error = outcome.error { failures.append(error) }
                if outcome.isWrongDocument, !previous.contains(download.key) {
                    try await cache.downloads.remove(download.source, from: set)
                }
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

/// The stored part of one item of a set.
struct OfflineReport: Encodable, Sendable {
    var set: String
    var url: String
    var storedBytes: Int64
    @EncodedAsNull var length: Int64?
    var complete: Bool
    @EncodedAsNull var missing: Int64?
    private let needsURL: Bool

    private enum CodingKeys: CodingKey { case set, url, storedBytes, length, complete, missing }

    init(_ item: DownloadSet.Item, in set: String) {
        self.set = set
        url = item.redactedURL
        storedBytes = item.storedByteCount
        _length = EncodedAsNull(wrappedValue: item.length)
        complete = item.isComplete
        _missing = EncodedAsNull(wrappedValue: item.missingByteCount)
        needsURL = item.url == nil && !item.isComplete
    }

    /// A one-line summary.
    var text: String {
        let goal = length.map { " of \(ByteCount(bytes: $0).text)" } ?? ""
        return "\(set.shown)  \(ByteCount(bytes: storedBytes).text)\(goal)  \(url)\(state)"
    }

    private var state: String {
        guard complete else { return needsURL ? "  incomplete; to resume, give the URL again" : "  incomplete" }
        let isPlaylist = ManifestHint.isInPath(url)
        return isPlaylist ? "  only the playlist was checked; “spool offline add” checks all files" : ""
    }

    /// The next step after an error about the contents of a set.
    static let listAdvice = "“spool offline list” lists the sets and their media"

    static func noSet(_ name: String) -> AdvisedError {
        AdvisedError(.notStored, "unknown set “\(name.shown)”", advice: listAdvice)
    }
}
#endif
