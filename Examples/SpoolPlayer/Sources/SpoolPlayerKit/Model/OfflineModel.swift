import Observation
import SpoolAVFoundation

/// Media that is kept for play without a network: files in named sets, and streams one by one.
@MainActor @Observable final class OfflineModel {
    /// The set that titles are added to.
    var name = "Flight"
    /// The names of the sets. What is in one: `cache.downloads.states(of:)`.
    private(set) var sets: [String] = []
    /// Why titles could not be added, for where they are listed.
    private(set) var refusals: [Title.ID: String] = [:]
    let streams: KeptStreams
    /// What the last action has failed by, and the last look.
    private var actionError: String?
    private var lookError: String?
    private let cache: MediaCache

    init(cache: MediaCache) {
        self.cache = cache
        streams = KeptStreams(cache: cache)
    }

    /// What went wrong. A look leaves an action's failure for people to see.
    var message: String? { actionError ?? lookError }

    /// Looks which sets there are, and how much of the streams.
    func refresh() async {
        do {
            sets = try await cache.downloads.sets().map(\.name)
            lookError = nil
        } catch {
            lookError = error.localizedDescription
        }
        await streams.measure()
    }

    /// Goes on with what sets and streams lack: after a launch, and when the network is back.
    func resume() async {
        await perform { try await cache.downloads.resume() }
        await streams.resume()
    }

    /// Keeps a title offline, and returns when it is noted.
    func add(_ title: Title) async {
        refusals[title.id] = nil
        if title.isStream { return streams.add(title) }
        await perform { try await cache.downloads.add(title.source, to: name) }
        refusals[title.id] = actionError
    }

    /// Lets go of a set: its files may be evicted from now on.
    func release(_ set: String) async {
        await perform { try await cache.downloads.release(set) }
    }

    /// Gives a stream up, and removes what is stored of it.
    func remove(stream id: Title.ID) async {
        await perform { try await streams.remove(id) }
    }

    /// Why a title is not kept, where that was wanted.
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
