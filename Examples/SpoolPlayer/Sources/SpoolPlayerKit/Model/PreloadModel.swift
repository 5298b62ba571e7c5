import Observation
import SpoolAVFoundation

/// The part of a title that the user preloads.
enum PreloadChoice {
    case start, minute, whole

    /// The amount of a file to preload.
    var amount: PreloadAmount {
        switch self {
        case .start: .startup
        case .minute: .seconds(60)
        case .whole: .entire
        }
    }

    /// The number of seconds of a stream to preload, or `nil` for the whole stream. At least one segment, and all
    /// segments that start before this time, are preloaded.
    var firstSeconds: Double? {
        switch self {
        case .start: 5
        case .minute: 60
        case .whole: nil
        }
    }
}

/// The preloads of whole titles or of their starts.
@MainActor @Observable final class PreloadModel {
    private struct State {
        var words: String
        var isOver = false
        /// The key of the file, or `nil` for a stream, which consists of many files.
        let key: CacheKey?
    }

    private var states: [Title.ID: State] = [:]
    private let cache: MediaCache
    private let preloader: Preloader
    private let server: any MediaServer

    init(cache: MediaCache, server: any MediaServer) {
        self.cache = cache
        preloader = Preloader(cache, maximumConcurrentDownloads: 2)
        self.server = server
    }

    /// Returns the progress of a title's preload as text, or `nil` if the title has not been preloaded.
    func words(for title: Title) -> String? { states[title.id]?.words }

    /// Preloads a part of a title. Files are preloaded by the preloader, and streams by the server that the player
    /// uses.
    func preload(_ title: Title, _ choice: PreloadChoice) async {
        guard title.isStream else { return await preloadFile(title, choice.amount) }
        states[title.id] = State(words: "Preloading", key: nil)
        do {
            try await server.preload(title.source, firstSeconds: choice.firstSeconds)
            states[title.id] = State(words: "Preloaded", isOver: true, key: nil)
        } catch {
            states[title.id] = State(words: error.localizedDescription, isOver: true, key: nil)
        }
    }

    /// Removes the state of a file that is no longer stored, or all states if `key` is `nil`. The file may belong to a
    /// stream, so the states of streams are also removed.
    func forget(_ key: CacheKey?) {
        states = states.filter { _, state in
            !state.isOver || (key != nil && state.key != nil && state.key != key)
        }
    }

    private func preloadFile(_ title: Title, _ amount: PreloadAmount) async {
        let key = cache.key(for: title.source)
        for await state in preloader.add(title.source, amount, priority: .high).states {
            states[title.id] = State(words: words(for: state), isOver: state.phase.isFinal, key: key)
        }
    }

    private func words(for state: PreloadState) -> String {
        switch state.phase {
        case .waiting: return "Waiting to be preloaded"
        case .finished: return "Preloaded"
        case .failed: return state.error?.localizedDescription ?? "Not preloaded"
        case .cancelled: return "Preload cancelled"
        default:
            guard let fraction = state.fractionCompleted else { return "Preloading" }
            return "Preloading \(fraction.formatted(.percent.precision(.fractionLength(0))))"
        }
    }
}
