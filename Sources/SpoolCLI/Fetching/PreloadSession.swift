#if Tools
import Spool
import SpoolProxy
import Synchronization

/// A session that preloads media, and prints a line for each finished item.
struct PreloadSession {
    /// The numbers that the progress line shows.
    private struct Tally {
        var ended = 0
        var storedBytes: Int64 = 0
    }

    private let cache: MediaCache
    private let jobs: Int
    private let isQuiet: Bool

    /// Creates a session.
    ///
    /// - Parameter isQuiet: Whether to suppress the lines on standard output.
    init(_ cache: MediaCache, jobs: Int, isQuiet: Bool) {
        self.cache = cache
        self.jobs = jobs
        self.isQuiet = isQuiet
    }

    /// Preloads the sources, in the given order.
    ///
    /// - Returns: The outcome of each preload.
    /// - Throws: `CancellationError`. ``CommandFailure`` if standard output cannot be written.
    func run(
        _ sources: [MediaSource], _ amount: PreloadAmount, ofStreams share: StreamAmount
    ) async throws -> [PreloadOutcome] {
        let preloader = Preloader(cache, maximumConcurrentDownloads: jobs)
        let preloads = sources.map { preloader.add($0, amount) }
        let tally = Mutex(Tally())
        let line = LiveLine { columns in
            let tally = tally.withLock { $0 }
            // At most 256 preloads run at the same time, so later ones usually haven't stored anything yet.
            let running = preloads[tally.ended...].prefix(256)
            let bytes = running.reduce(tally.storedBytes) { $0 + $1.state.storedByteCount }
            let text = "\(tally.ended) of \(preloads.count.counted("file"))  \(ByteCount(bytes: bytes).text)"
            return String(text.prefix(max(0, columns - 1)))
        }
        do {
            var outcomes: [PreloadOutcome] = []
            for preload in preloads {
                var outcome = PreloadOutcome(await preload.finished())
                try Task.checkCancellation()
                try await outcome.addStream(of: preload.source, share, in: cache, jobs: jobs)
                outcomes.append(outcome)
                tally.withLock { [outcome] tally in
                    tally.ended += 1
                    tally.storedBytes += outcome.storedBytes
                }
                if !isQuiet { try Output.line(PreloadReport(preload.source, outcome).text) }
            }
            await line.end()
            return outcomes
        } catch {
            preloader.cancelAll()
            await line.end()
            throw error
        }
    }
}

/// The progress of one preloaded resource.
struct PreloadReport: Encodable, Sendable {
    var url: String
    /// The number of stored bytes, in the JSON field `landed`.
    var storedBytes: Int64
    /// The number of bytes to store, in the JSON field `wanted`.
    @EncodedAsNull var targetBytes: Int64?
    var complete: Bool

    private enum CodingKeys: String, CodingKey {
        case url, complete
        case storedBytes = "landed"
        case targetBytes = "wanted"
    }

    init(_ source: MediaSource, _ outcome: PreloadOutcome) {
        url = source.redactedURL
        storedBytes = outcome.storedBytes
        _targetBytes = EncodedAsNull(wrappedValue: outcome.targetBytes)
        complete = outcome.isComplete
    }

    /// A one-line summary.
    var text: String {
        let goal = targetBytes.map { " of \(ByteCount(bytes: $0).text)" } ?? ""
        return "\(ByteCount(bytes: storedBytes).text)\(goal)  \(url)" + (complete ? "" : "  incomplete")
    }
}
#endif
