import Spool
import Synchronization

/// Preloads media files, and says of each one when it is over.
struct PreloadSession {
    /// The numbers of the line that is drawn meanwhile.
    private struct Tally {
        var ended = 0
        var landed: Int64 = 0
    }

    private let cache: MediaCache
    private let jobs: Int
    private let isQuiet: Bool

    /// - Parameter isQuiet: Whether nothing is written to standard output.
    init(_ cache: MediaCache, jobs: Int, isQuiet: Bool) {
        self.cache = cache
        self.jobs = jobs
        self.isQuiet = isQuiet
    }

    /// Preloads, in the order given.
    ///
    /// - Returns: How each one ended.
    /// - Throws: `CancellationError`; ``CommandFailure`` where standard output can't be written.
    func run(
        _ sources: [MediaSource], _ amount: PreloadAmount, ofStreams share: StreamAmount
    ) async throws -> [PreloadOutcome] {
        let preloader = Preloader(cache, jobs: jobs)
        let preloads = sources.map { preloader.add($0, amount) }
        let tally = Mutex(Tally())
        let line = LiveLine { columns in
            let tally = tally.withLock { $0 }
            // Those at the front of the line run.
            let landed = preloads[tally.ended...].prefix(256).reduce(tally.landed) { $0 + $1.state.landedByteCount }
            let text = "\(tally.ended) of \(preloads.count.counted("file"))  \(ByteCount(bytes: landed).text)"
            return String(text.prefix(max(0, columns - 1)))
        }
        do {
            var outcomes: [PreloadOutcome] = []
            for preload in preloads {
                var outcome = PreloadOutcome(await preload.finished())
                try Task.checkCancellation()
                try await outcome.addStream(of: preload.source, share, in: cache, jobs: jobs)
                outcomes.append(outcome)
                tally.withLock { [outcome] in ($0.ended, $0.landed) = ($0.ended + 1, $0.landed + outcome.landed) }
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
