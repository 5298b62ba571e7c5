import Observation
import SpoolAVFoundation
import SpoolProxy

/// The HLS streams for offline playback. A download set would store only the playlist file, so this type also downloads
/// the segments.
@MainActor @Observable final class OfflineStreams {
    /// The progress of a download.
    struct State: Sendable {
        var name: String
        var fraction = 0.0
        var error: String?
    }

    private(set) var states: [Title.ID: State] = [:]
    private var titles: [Title.ID: Title] = [:]
    private var tasks: [Title.ID: Task<Void, Never>] = [:]
    private let cache: MediaCache
    private let preloader: Preloader
    private static let key = "streams"

    /// Creates the list, including the streams from previous launches.
    init(cache: MediaCache) {
        self.cache = cache
        preloader = Preloader(cache)
        let noted = UserDefaults.standard.dictionary(forKey: Self.key) as? [String: String] ?? [:]
        for (address, name) in noted {
            guard let url = URL(string: address) else { continue }
            titles[url] = Title(name: name, source: MediaSource(url: url))
            states[url] = State(name: name)
        }
    }

    /// Starts or resumes a download, unless it is already in progress.
    func add(_ title: Title) {
        guard tasks[title.id] == nil else { return }
        titles[title.id] = title
        states[title.id] = State(name: title.name, fraction: states[title.id]?.fraction ?? 0)
        note()
        tasks[title.id] = Task {
            await preload(title)
            tasks[title.id] = nil
        }
    }

    /// Resumes incomplete downloads. Stored bytes are not requested again.
    func resume() async {
        await measure()
        for (id, title) in titles where (states[id]?.fraction ?? 0) < 1 || states[id]?.error != nil { add(title) }
    }

    /// Updates the progress of streams that are not downloading, because their files may have been removed.
    func measure() async {
        for (id, title) in titles where tasks[id] == nil {
            do {
                let fractions = try await HLSDownloader.storedVariants(of: title.source, in: cache).map {
                    // An incomplete variant may have all of its segments, but lack other files, such as its audio.
                    // Therefore, its fraction stays below 1.
                    $0.isComplete ? 1 : min(Double($0.storedSegmentCount) / Double(max($0.segmentCount, 1)), 0.99)
                }
                if tasks[id] == nil { states[id]?.fraction = fractions.max() ?? 0 }
            } catch {
                states[id]?.error = error.localizedDescription
            }
        }
    }

    /// Cancels a download, and removes its stored bytes.
    func remove(_ id: Title.ID) async throws {
        guard let title = titles[id] else { return }
        tasks[id]?.cancel()
        // If the app did not wait, the download might store more bytes after the removal.
        await tasks[id]?.value
        (titles[id], states[id]) = (nil, nil)
        note()
        try await cache.remove(cache.key(for: title.source))
    }

    private func preload(_ title: Title) async {
        do {
            // The playlist is stored and pinned first, because the stored files of a stream are pinned with their
            // playlist.
            let playlist = preloader.add(title.source, .entire, priority: .high)
            let state = await withTaskCancellationHandler {
                await playlist.finished()
            } onCancel: {
                playlist.cancel()
            }
            try Task.checkCancellation()
            if let error = state.error { throw error }
            try await cache.pin(cache.key(for: title.source))
            let download = HLSDownloader(
                title.source, in: cache, variant: .bandwidth(atMost: AppModel.maximumBitRate))
            try await download.run { progress in
                Task { @MainActor in self.advance(title.id, to: progress.fractionCompleted) }
            }
            advance(title.id, to: 1)
        } catch {
            // If the task was cancelled, the stream was removed.
            if !Task.isCancelled { states[title.id]?.error = error.localizedDescription }
        }
    }

    /// Updates the progress, which never decreases. Several tasks report it, so reports may be out of order.
    private func advance(_ id: Title.ID, to fraction: Double) {
        states[id]?.fraction = max(states[id]?.fraction ?? 0, fraction)
    }

    /// Saves the list of streams. URLs with a query or a login are omitted, because they may contain a secret.
    private func note() {
        let known = titles.values.filter { $0.source.redactedURL == $0.id.absoluteString }
        let names = Dictionary(known.map { ($0.id.absoluteString, $0.name) }) { first, _ in first }
        UserDefaults.standard.set(names, forKey: Self.key)
    }
}
