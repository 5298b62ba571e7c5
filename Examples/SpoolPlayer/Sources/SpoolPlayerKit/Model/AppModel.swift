import MediaPlayer
import Observation
import SpoolAVFoundation
import SpoolProxy

/// What all screens share: one cache, one server over it, one player.
///
/// None of them has to be opened or started, and making them can't fail: each begins when it is first needed.
@MainActor @Observable public final class AppModel {
    /// The most bits per second that a variant of an HLS stream may have. What is offered to the player and what is
    /// downloaded go by the same number.
    static let maximumBitRate: Int64 = 3_000_000

    let cache: MediaCache
    let player: CachingPlayer
    let preloads: PreloadModel
    let storage: StorageModel
    let offline: OfflineModel
    let notices = Notices()
    let webDAV: WebDAVAccount
    let s3 = S3Account()

    /// The screen that is seen.
    var screen = Screen.library
    /// Whether the cache is to do without the network. Downloads that failed for want of it go on when it is back.
    var isOffline = false {
        didSet {
            upstream.isOffline = isOffline
            if !isOffline { Task { await offline.resume() } }
        }
    }

    private let upstream = SwitchedUpstream(HTTPUpstream.standard())
    private var playlist: [Title] = []

    /// Makes the player and its cache. Make one for the whole app.
    public init() {
        var configuration = MediaCache.Configuration()
        configuration.capacity = Capacity.saved
        // Not the caches folder: the system may empty that, and what is kept for a flight should be there. Spool excludes
        // its files from backups.
        cache = MediaCache(
            directory: .applicationSupportDirectory.appending(path: "Media"), upstream: upstream,
            configuration: configuration)
        let server = ProxyServer.inApp(cache, maximumBitRate: Self.maximumBitRate)
        player = CachingPlayer(in: cache, server: server)
        preloads = PreloadModel(cache: cache, server: server)
        storage = StorageModel(cache: cache, preloads: preloads)
        offline = OfflineModel(cache: cache)
        webDAV = WebDAVAccount(over: upstream)
        // The lock screen and Control Center.
        player.publishNowPlaying { [weak self] entry in
            [MPMediaItemPropertyTitle: self?.title(of: entry)?.name ?? entry.source.displayAddress]
        }
    }

    /// Plays one of several titles; the others stand before and behind it in the queue.
    func play(_ title: Title, of titles: [Title]) {
        playlist = titles
        notices.clear()
        player.queue.removeAll()
        // This one first, which makes it current: else the first of the list would begin to load for nothing.
        player.queue.append(title.source)
        if let index = titles.firstIndex(where: { $0.id == title.id }) {
            player.queue.insert(contentsOf: titles[..<index].map(\.source), at: 0)
            player.queue.append(contentsOf: titles[(index + 1)...].map(\.source))
        }
        player.play()
        screen = .player
    }

    /// Listens to what the cache tells, until its task is cancelled.
    func followEvents() async {
        for await event in cache.events() {
            notices.note(event)
            if case .evicted = event.kind { preloads.forget(event.key) }
        }
    }

    /// What plays now, or is to.
    var currentTitle: Title? { player.queue.current.flatMap { title(of: $0) } }

    private func title(of entry: CachingQueue.Entry) -> Title? { playlist.first { $0.id == entry.source.url } }
}
