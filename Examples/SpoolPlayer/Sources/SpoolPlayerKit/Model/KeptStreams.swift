import Observation
import SpoolAVFoundation
import SpoolProxy

/// HLS streams that are kept for play without a network. A set of downloads would bring a playlist as the file that it is;
/// here its segments come with it.
@MainActor @Observable final class KeptStreams {
    /// How far one has come.
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

    /// Those of former launches, too.
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

    /// Begins to bring one, or goes on with it; nothing where that is under way.
    func add(_ title: Title) {
        guard tasks[title.id] == nil else { return }
        titles[title.id] = title
        states[title.id] = State(name: title.name, fraction: states[title.id]?.fraction ?? 0)
        note()
        tasks[title.id] = Task {
            await bring(title)
            tasks[title.id] = nil
        }
    }

    /// Goes on with what is not complete. What is stored is not asked for again.
    func resume() async {
        await measure()
        for (id, title) in titles where (states[id]?.fraction ?? 0) < 1 || states[id]?.error != nil { add(title) }
    }

    /// Looks how much is stored of those that are not under way: some may have been removed meanwhile.
    func measure() async {
        for (id, title) in titles where tasks[id] == nil {
            do {
                let fractions = try await HLSDownloader.storedVariants(of: title.source, in: cache).map {
                    // What a picture needs besides, such as its sound, the next download brings.
                    $0.isComplete ? 1 : min(Double($0.storedSegments) / Double(max($0.segmentCount, 1)), 0.99)
                }
                if tasks[id] == nil { states[id]?.fraction = fractions.max() ?? 0 }
            } catch {
                states[id]?.error = error.localizedDescription
            }
        }
    }

    /// Gives one up, and removes what is stored of it.
    func remove(_ id: Title.ID) async throws {
        guard let title = titles[id] else { return }
        tasks[id]?.cancel()
        // Else it would store more after the removal.
        await tasks[id]?.value
        (titles[id], states[id]) = (nil, nil)
        note()
        try await cache.remove(cache.key(for: title.source))
    }

    private func bring(_ title: Title) async {
        do {
            // Pinned before the rest comes: what lands of a stream is pinned where its playlist is.
            let playlist = preloader.add(title.source, .whole, priority: .high)
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
            // Somebody has removed it, where the task is cancelled.
            if !Task.isCancelled { states[title.id]?.error = error.localizedDescription }
        }
    }

    /// Reports come by tasks of their own, which may overtake each other.
    private func advance(_ id: Title.ID, to fraction: Double) {
        states[id]?.fraction = max(states[id]?.fraction ?? 0, fraction)
    }

    /// Writes down which there are. Not what may hold a secret: an address with a query; a login never is in one.
    private func note() {
        let known = titles.values.filter { $0.source.displayAddress == $0.id.absoluteString }
        let names = Dictionary(known.map { ($0.id.absoluteString, $0.name) }) { first, _ in first }
        UserDefaults.standard.set(names, forKey: Self.key)
    }
}
