import Observation
import SpoolAVFoundation

/// Media for offline playback: files in named sets, and individual streams.
@MainActor @Observable final class OfflineModel {
    /// The set to which titles are added.
    var name = "Flight"
    /// The names of the sets. `cache.downloads.states(of:)` returns their contents.
    private(set) var sets: [String] = []
    /// The reasons why titles could not be added, for display in lists.
    private(set) var refusals: [Title.ID: String] = [:]
    let streams: OfflineStreams
    /// The errors from the last action and the last update.
    private var actionError: String?
    private var refreshError: String?
    private let cache: MediaCache

    init(cache: MediaCache) {
        self.cache = cache
        streams = OfflineStreams(cache: cache)
    }

    /// The error to show, if any. An update does not hide the error of an action.
    var message: String? { actionError ?? refreshError }

    /// Updates the list of sets, and the progress of streams.
    func refresh() async {
        do {
            sets = try await cache.downloads.sets().map(\.name)
            refreshError = nil
        } catch {
            refreshError = error.localizedDescription
        }
        await streams.measure()
    }

    /// Resumes the downloads of sets and streams. The app calls this method at launch, and when the offline switch is
    /// turned off.
    func resume() async {
        await perform { try await cache.downloads.resume() }
        await streams.resume()
    }

    /// Starts the download of a title for offline playback. Returns once the download is recorded.
    func add(_ title: Title) async {
        refusals[title.id] = nil
        if title.isStream { return streams.add(title) }
        await perform { try await cache.downloads.add(title.source, to: name) }
        refusals[title.id] = actionError
    }

    /// Removes a set. Files that no other set contains may then be evicted.
    func release(_ set: String) async {
        await perform { try await cache.downloads.release(set) }
    }

    /// Cancels the download of a stream, and removes its stored bytes.
    func remove(stream id: Title.ID) async {
        await perform { try await streams.remove(id) }
    }

    /// Returns the reason why a title is not available offline, if its download failed.
    func problem(with title: Title) -> String? { refusals[title.id] ?? streams.states[title.id]?.error }

    private func perform(_ action: () async throws -> Void) async {
        do {
            try await action()
            actionError = nil
        } catch {
            actionError = error.localizedDescription
        }
        await refresh()
    }
}
