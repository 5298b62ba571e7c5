package import Foundation
import HTTPTypes
import SpoolScheduling
public import SpoolStorage
import Synchronization

/// Media for playback without a network, in named sets. It is pinned from the start, downloaded at a lower priority
/// than playback, and stored until its sets are released.
///
/// ```swift
/// let download = try await cache.downloads.add(MediaSource(url: url), to: "Flight")
/// for await state in download.states { bar.progress = state.fractionCompleted ?? 0 }
/// ```
///
/// Sets survive restarts. ``resume(_:)`` fetches their missing ranges; stored bytes are not fetched again. By default,
/// only the scheme, host and path of a URL are recorded, because its other parts may contain secrets. The query is
/// recorded only on request. Header fields and resolved requests are never recorded. After a restart, the download of a
/// source that needs them waits until the source is added again.
///
/// While iOS has suspended the app, its requests fail as if the network connection had been lost. Downloads resume
/// automatically in the same process, within the limits of `RetryPolicy`. After that, and in a new process, call
/// ``resume(_:)``. To download while the app is suspended, use ``handOver(to:chunkSize:maximumTransfers:)`` and
/// ``takeBack(from:)``.
///
/// Like a ``Preloader``, this type downloads a playlist as a single file. The methods may be called from any task.
public struct Downloads: Sendable {
    /// The name of the default set.
    public static let standardSet = "downloads"

    let cache: MediaCache

    /// Adds a media file to a set and downloads it. The set is created if it does not exist. When this method returns,
    /// the download is recorded for the next launch, and the resource is pinned unless a version of unknown length is
    /// stored.
    ///
    /// If the origin does not send a length, the resource is pinned when its body has ended. If more bytes are received
    /// than fit in the cache, as with an endless radio stream, the download ends with `.capacityExceeded`.
    /// ``resume(_:)`` does not start it again.
    ///
    /// If the set already contains the resource, its download resumes with this source.
    ///
    /// - Parameters:
    ///   - source: The source of the media file.
    ///   - set: The name of the set.
    ///   - remembersQuery: Whether the query of the source's URL is recorded, so that the download can resume after a
    ///     restart. Use this only if the query does not contain secrets.
    /// - Throws: `CacheError`: `.storage` if nothing can be recorded, `.closed`, or `.capacityExceeded` if pinned media
    ///   is known to leave too little space. If this becomes known later, ``Download/states`` reports the error.
    @discardableResult
    public func add(
        _ source: MediaSource, to set: String = standardSet, remembersQuery: Bool = false
    ) async throws -> Download {
        try await add([source], to: set, remembersQuery: remembersQuery)[0]
    }

    /// Adds several media files to a set at once. Either all of them are recorded, or none are. See
    /// ``add(_:to:remembersQuery:)-(MediaSource,_,_)``.
    @discardableResult
    public func add(
        _ sources: [MediaSource], to set: String = standardSet, remembersQuery: Bool = false
    ) async throws -> [Download] {
        let store = try await cache.store
        let keyed = sources.map { (key: cache.key(for: $0), source: $0) }
        for (key, source) in keyed {
            guard let length = try await store.resource(key)?.description?.length else { continue }
            try await work.checkReservedSpace(for: length, key, source.redactedURL, in: cache)
        }
        try await store.downloads.add(
            keyed.map { key, source in
                DownloadRecord(
                    set: set, key: key.hash, url: source.redactedURL,
                    source: source.addressToRemember(withQuery: remembersQuery)?.absoluteString)
            })
        return keyed.map { key, source in work.begin(source, key, in: cache) }
    }

    /// Resumes incomplete downloads. Call this method when the app starts and when the network returns.
    ///
    /// - Parameter set: The name of the set; `nil` for all sets.
    /// - Returns: The running downloads. Items whose source must be added again are not included; see
    ///   ``DownloadSet/Item/url``.
    /// - Throws: `CacheError`: `.storage`, `.closed`.
    @discardableResult
    public func resume(_ set: String? = nil) async throws -> [Download] {
        let store = try await cache.store
        let missing = try await store.downloads.members(of: set).filter { !work.item($0).isComplete }
        // An item that was removed from the cache in the meantime is pinned again, if its download can be started here.
        try await store.downloads.add(missing.filter { $0.source != nil })
        var seen: Set<CacheKey> = []
        return missing.compactMap { record in
            let item = work.item(record)
            guard seen.insert(item.key).inserted else { return nil }
            if let download = work.running(item.key) { return download }
            return source(of: item).map { work.begin($0, item.key, in: cache) }
        }
    }

    /// Returns the recorded source of an item; `nil` if its URL was not recorded.
    func source(of item: DownloadSet.Item) -> MediaSource? {
        item.url.map { url in
            let isByPolicy = cache.key(for: url) == item.key
            return MediaSource(url: url, key: isByPolicy ? nil : item.key)
        }
    }

    /// Returns all sets, sorted by name, with their items, stored parts and missing items.
    ///
    /// - Throws: `CacheError`: `.storage` if the catalog can't be read, `.closed`.
    public func sets() async throws -> [DownloadSet] { try await sets(nil) }

    /// Returns the set with this name; `nil` if there is none.
    public func set(_ name: String) async throws -> DownloadSet? { try await sets(name).first }

    /// Returns a stream of the states of a set: the current state first, then the newest state after each change.
    ///
    /// The stream ends when the set is released or the cache is closed. Iterate over it from one task only.
    public func states(of set: String) -> AsyncStream<DownloadSet> {
        let course = DownloadObserver(of: set, in: self)
        return AsyncStream { await course.next() }
    }

    /// Releases a set. Media that no other set contains is no longer downloaded, and may be evicted unless it is pinned
    /// directly.
    ///
    /// Stored bytes stay in the cache until space is needed.
    ///
    /// - Returns: Whether the set existed.
    /// - Throws: `CacheError`: `.storage` if the catalog can't be written, `.closed`.
    @discardableResult
    public func release(_ set: String) async throws -> Bool { try await remove(nil, from: set) }

    /// Removes a media file from a set; see ``release(_:)``.
    ///
    /// - Returns: Whether the set contained the media file.
    @discardableResult
    public func remove(_ source: MediaSource, from set: String = standardSet) async throws -> Bool {
        try await remove(cache.key(for: source), from: set)
    }

    /// Whether downloads are paused. Setting this property to true ends running requests, which resume later with the
    /// missing ranges.
    public var isPaused: Bool {
        get { work.isPaused }
        nonmutating set { work.isPaused = newValue }
    }

    /// The conditions under which all downloads of the cache pause, for example a setting such as “only over Wi-Fi”.
    /// The default is `nil`: neither the network nor the power mode pauses downloads, because the user has requested
    /// them.
    public var conditions: PreloadConditions? {
        get { work.conditions }
        nonmutating set { work.conditions = newValue }
    }

    /// Returns the sets of a cache directory without opening it, even while another process uses it.
    package static func inspect(_ directory: URL, encryptionKey: EncryptionKey? = nil) async throws -> [DownloadSet] {
        let downloads = try await StoredDownloads.inspect(path: directory.path, encryptionKey: encryptionKey)
        return DownloadSet.sets(of: downloads) { DownloadSet.Item($0) }
    }

    /// The object that runs the cache's downloads.
    var work: DownloadWork {
        cache.core.downloadWork.withLock { held in
            if let work = held as? DownloadWork { return work }
            let work = DownloadWork()
            held = work
            return work
        }
    }

    private func remove(_ key: CacheKey?, from set: String) async throws -> Bool {
        guard let free = try await cache.store.downloads.remove(key, from: set) else { return false }
        for key in free { work.cancel(key) }
        work.changes.change()
        return true
    }

    private func sets(_ name: String?) async throws -> [DownloadSet] {
        DownloadSet.sets(of: try await cache.store.downloads.members(of: name)) { work.item($0) }
    }
}

extension MediaCache {
    /// The downloads of media for playback without a network.
    public var downloads: Downloads { Downloads(cache: self) }
}

extension MediaSource {
    /// Returns the URL from which the download can resume. Returns `nil` if the URL must not be recorded.
    fileprivate func addressToRemember(withQuery: Bool) -> URL? {
        guard !isResolved, headerFields.isEmpty else { return nil }
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.fragment = nil
        return parts.query == nil || withQuery ? parts.url : nil
    }
}

/// The offline download of one resource, and its progress.
///
/// You need not retain this value, because a started download continues. To cancel the download, remove its source from
/// all sets with ``Downloads/remove(_:from:)``.
public struct Download: Sendable {
    /// The cache key of the resource.
    public let key: CacheKey
    let preload: Preload

    /// The source of the bytes.
    public var source: MediaSource { preload.source }

    /// The current progress.
    public var state: PreloadState { preload.state }

    /// A stream of the progress: the current state first, then the newest state after each change, and the final state
    /// last. See ``Preload/states``.
    ///
    /// The download fails with `.capacityExceeded` if pinned media leaves too little space. If received bytes could not
    /// be stored for another reason, it fails with the code for that reason, or with `.incomplete`.
    public var states: AsyncStream<PreloadState> { preload.states }

    /// Waits until the download has ended, and returns its final state. Cancelling the waiting task does not cancel the
    /// download.
    @discardableResult
    public func finished() async -> PreloadState { await preload.finished() }
}

/// An observer of the states of a set.
private final class DownloadObserver: Sendable {
    private let name: String
    private let downloads: Downloads
    private let seen = Mutex<UInt64?>(nil)

    init(of name: String, in downloads: Downloads) {
        self.name = name
        self.downloads = downloads
    }

    /// Returns the next state; `nil` at the end.
    func next() async -> DownloadSet? {
        let changes = downloads.work.changes
        if let version = seen.withLock({ $0 }), !(await changes.wait(beyond: version)) { return nil }
        let version = changes.version
        seen.withLock { $0 = version }
        // An error means that the cache is closed or the catalog is unreadable, so the states end.
        return try? await downloads.set(name)
    }
}
