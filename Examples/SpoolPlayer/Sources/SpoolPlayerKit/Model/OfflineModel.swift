import Observation
import SpoolAVFoundation
import SpoolProxy

/// Media that is kept for play without a network: files in named sets, and streams one by one.
@MainActor @Observable final class OfflineModel {
    /// The set that titles are added to.
    var name = "Flight"
    /// The names of the sets. What is in one: `cache.downloads.states(of:)`.
    private(set) var sets: [String] = []
    /// How far the streams have come that are being brought, or were, since the app was started.
    private(set) var streams: [Title.ID: StreamState] = [:]
    private(set) var message: String?
    private let cache: MediaCache

    /// A stream on its way.
    struct StreamState: Sendable {
        var name: String
        var fraction = 0.0
        var error: String?
    }

    init(cache: MediaCache) { self.cache = cache }

    /// Looks which sets there are.
    func refresh() async {
        await perform {}
    }

    /// Goes on with what sets lack: after a launch, and when the network is back.
    func resume() async {
        await perform { try await cache.downloads.resume() }
    }

    /// Keeps a title offline, and returns when it is noted; of a stream, when it is there.
    func add(_ title: Title) async {
        if title.isStream {
            await keep(title)
        } else {
            await perform { try await cache.downloads.add(title.source, to: name) }
        }
    }

    /// Lets go of a set: its files may be evicted from now on.
    func release(_ set: String) async {
        await perform { try await cache.downloads.release(set) }
    }

    /// A set brings a playlist as the file that it is. So a stream is brought by itself, and pinned: its segments with it.
    private func keep(_ title: Title) async {
        streams[title.id] = StreamState(name: title.name)
        let download = HLSDownloader(
            title.source, in: cache, variant: .bandwidth(atMost: AppModel.maximumBitRate))
        do {
            try await download.run { progress in
                Task { @MainActor in self.streams[title.id]?.fraction = progress.fractionCompleted }
            }
            try await cache.pin(title.source)
        } catch {
            streams[title.id]?.error = error.localizedDescription
        }
    }

    private func perform(_ action: () async throws -> Void) async {
        do {
            try await action()
            sets = try await cache.downloads.sets().map(\.name)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }
}
