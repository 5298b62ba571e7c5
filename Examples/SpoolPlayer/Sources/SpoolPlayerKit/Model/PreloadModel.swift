import Observation
import SpoolAVFoundation

/// Brings titles, or their beginnings, before anyone plays them.
@MainActor @Observable final class PreloadModel {
    /// How far each has come, in words.
    private(set) var states: [Title.ID: String] = [:]
    private let preloader: Preloader
    private let server: any MediaServer

    init(cache: MediaCache, server: any MediaServer) {
        preloader = Preloader(cache, jobs: 2)
        self.server = server
    }

    /// Brings so much of a title: a file by a preloader; of a stream the first half minute, by the server that players get
    /// it from.
    func bring(_ title: Title, _ amount: PreloadAmount) async {
        states[title.id] = "Preloading"
        if title.isStream {
            do {
                try await server.preload(title.source, firstSeconds: 30)
                states[title.id] = "Preloaded"
            } catch {
                states[title.id] = error.localizedDescription
            }
        } else {
            for await state in preloader.add(title.source, amount, priority: .high).states {
                states[title.id] = words(for: state)
            }
        }
    }

    private func words(for state: PreloadState) -> String {
        if let error = state.error { return error.localizedDescription }
        if state.isComplete { return "Preloaded" }
        return "Preloading " + (state.fractionCompleted?.formatted(.percent.precision(.fractionLength(0))) ?? "")
    }
}
