import MediaPlayer
import Observation
import SpoolAVFoundation
import SpoolProxy

/// The objects that all screens share: one cache, one server and one player.
///
/// These objects do not have to be opened or started, and creating them can't fail. Each starts when it is first used.
@MainActor @Observable public final class AppModel {
    /// The maximum bit rate of HLS variants, in bits per second, for both playback and downloads.
    static let maximumBitRate: Int64 = 3_000_000

    let cache: MediaCache
    let player: CachingPlayer
    let preloads: PreloadModel
    let storage: StorageModel
    let offline: OfflineModel
    let notices = Notices()
    let webDAV: WebDAVAccount
    let s3 = S3Account()

    /// The current screen.
    var screen = Screen.library
    /// Whether the cache behaves as if there were no network. Setting this property to `false` resumes failed
    /// downloads.
    var isOffline = false {
        didSet {
            upstream.isOffline = isOffline
            if !isOffline { Task { await offline.resume() } }
        }
    }

    private let upstream = SwitchedUpstream(HTTPUpstream.standard())
    private var playlist: [Title] = []

    /// Creates the player and its cache. Create one model for the whole app.
    public init() {
        var configuration = MediaCache.Configuration()
        configuration.capacity = Capacity.saved
        // The system may empty the caches folder, but offline downloads must remain, so the cache is in another folder.
        // Spool excludes its files from backups.
        cache = MediaCache(
            directory: .applicationSupportDirectory.appending(path: "Media"), upstream: upstream,
            configuration: configuration)
        let server = ProxyServer.inApp(cache, maximumBitRate: Self.maximumBitRate)
        player = CachingPlayer(in: cache, server: server)
        preloads = PreloadModel(cache: cache, server: server)
        storage = StorageModel(cache: cache, preloads: preloads)
        offline = OfflineModel(cache: cache)
        webDAV = WebDAVAccount(over: upstream)
        // Shows the title on the lock screen and in Control Center.
        player.publishNowPlaying { [weak self] entry in
            [MPMediaItemPropertyTitle: self?.title(of: entry)?.name ?? entry.source.redactedURL]
        }
    }

    /// Plays one of several titles. The other titles are placed before and after it in the queue.
    func play(_ title: Title, of titles: [Title]) {
        playlist = titles
        notices.clear()
        player.queue.removeAll()
        // This title is appended first, so that it becomes current. Otherwise, the first title in the list would start
        // to load.
        player.queue.append(title.source)
        if let index = titles.firstIndex(where: { $0.id == title.id }) {
            player.queue.insert(contentsOf: titles[..<index].map(\.source), at: 0)
            player.queue.append(contentsOf: titles[(index + 1)...].map(\.source))
        }
        player.play()
        screen = .player
    }

    /// Handles the cache's events until its task is cancelled.
    func followEvents() async {
        for await event in cache.events() {
            notices.note(event)
            if case .evicted = event.kind { preloads.forget(event.key) }
        }
    }

    /// The title of the queue's current entry.
    var currentTitle: Title? { player.queue.currentEntry.flatMap { title(of: $0) } }

    private func title(of entry: CachingQueue.Entry) -> Title? { playlist.first { $0.id == entry.source.url } }
}
