package import Foundation
import HTTPTypes
import SpoolStorage
import Synchronization

/// Media that is kept for play without a network, in named sets: pinned from the start, brought after what is played, and
/// kept until its sets are released.
///
/// ```swift
/// let download = try await cache.downloads.add(MediaSource(url: url), to: "Flight")
/// for await state in download.states { bar.progress = state.fractionCompleted ?? 0 }
/// ```
///
/// Sets survive restarts: ``resume(_:)`` goes on with what they lack, and what has landed is not asked for again. Of an
/// address, what may be secret is not written down: scheme, host and path are, a query only where that is asked for, and
/// header fields or what a resolver finds never. What needs those waits after a restart until its source is added again.
///
/// While iOS has the app suspended nothing is brought: requests are the app's own, and end as when a network is lost. In
/// the same process they go on by themselves when it runs again, as far as ``RetryPolicy`` allows; after that, and in a
/// new process, call ``resume(_:)``.
///
/// A playlist is brought as the file that it is, as by a ``Preloader``. All methods may be called from any task.
public struct Downloads: Sendable {
    /// The set of what is added to none by name.
    public static let standardSet = "downloads"

    let cache: MediaCache

    /// Adds a media file to a set and downloads it. The set is created if it does not exist. When this method returns, the
    /// download is recorded for the next launch, and the resource is pinned unless a version of unknown length is stored.
    ///
    /// If the origin does not announce a length, the resource is pinned when its body has ended. If more bytes are received
    /// than fit, as of an endless radio stream, the download ends with `.capacityExceeded` and ``resume(_:)`` does not start
    /// it again.
    ///
    /// What the set has already is gone on with, by this source.
    ///
    /// - Parameters:
    ///   - source: The media file.
    ///   - set: The set's name.
    ///   - remembersQuery: Whether a query of its URL is written down, to go on after a restart: for one that holds no
    ///     secret.
    /// - Throws: `CacheError`: `.storage` where nothing can be written down; `.closed`; `.capacityExceeded` where it is
    ///   known that pins leave no room for it. Where that is found later, ``Download/states`` tells it.
    @discardableResult
    public func add(
        _ source: MediaSource, to set: String = standardSet, remembersQuery: Bool = false
    ) async throws -> Download {
        try await add([source], to: set, remembersQuery: remembersQuery)[0]
    }

    /// As ``add(_:to:remembersQuery:)-(MediaSource,_,_)``, for several at once: all are noted, or none.
    @discardableResult
    public func add(
        _ sources: [MediaSource], to set: String = standardSet, remembersQuery: Bool = false
    ) async throws -> [Download] {
        let store = try await cache.store
        let keyed = sources.map { (key: cache.key(for: $0), source: $0) }
        for (key, source) in keyed {
            guard let length = try await store.resource(key)?.description?.length else { continue }
            try await work.checkRoom(for: length, key, source.displayAddress, in: cache)
        }
        try await store.downloads.add(
            keyed.map { key, source in
                DownloadRecord(
                    set: set, key: key.hash, url: source.displayAddress,
                    source: source.addressToRemember(withQuery: remembersQuery)?.absoluteString)
            })
        return keyed.map { key, source in work.begin(source, key, in: cache) }
    }

    /// Goes on with what is not complete: once when the app starts, and when the network is back.
    ///
    /// - Parameter set: One set only.
    /// - Returns: What is being brought now. What needs its source is not among it: ``DownloadSet/Item/url``.
    /// - Throws: `CacheError`: `.storage`, `.closed`.
    @discardableResult
    public func resume(_ set: String? = nil) async throws -> [Download] {
        let store = try await cache.store
        let missing = try await store.downloads.members(of: set).filter { !work.item($0).isComplete }
        // What was removed from the cache meanwhile is pinned anew, if it can be started here.
        try await store.downloads.add(missing.filter { $0.source != nil })
        var seen: Set<CacheKey> = []
        return missing.compactMap { record in
            let item = work.item(record)
            guard seen.insert(item.key).inserted else { return nil }
            if let download = work.running(item.key) { return download }
            return item.url.map { url in
                let isByPolicy = cache.key(for: url) == item.key
                return work.begin(MediaSource(url: url, key: isByPolicy ? nil : item.key), item.key, in: cache)
            }
        }
    }

    /// All sets, by name: what they have, how much of it is there, and what is missing.
    ///
    /// - Throws: `CacheError`: `.storage` when the catalog can't be read, `.closed`.
    public func sets() async throws -> [DownloadSet] { try await sets(nil) }

    /// The set of this name; nil if there is none.
    public func set(_ name: String) async throws -> DownloadSet? { try await sets(name).first }

    /// A set's state: the present one at once, then the newest one whenever it has changed; the end when the set is
    /// released or the cache is closed. One task iterates over it.
    public func states(of set: String) -> AsyncStream<DownloadSet> {
        let course = DownloadCourse(of: set, in: self)
        return AsyncStream { await course.next() }
    }

    /// Lets go of a set: what no other set has, and nobody has pinned for itself, may be evicted from now on, and is no
    /// longer brought. What is stored of it stays until room is needed.
    ///
    /// - Returns: Whether there was such a set.
    /// - Throws: `CacheError`: `.storage` when the catalog can't be written, `.closed`.
    @discardableResult
    public func release(_ set: String) async throws -> Bool { try await remove(nil, from: set) }

    /// Takes a media file out of a set, as ``release(_:)`` does all.
    ///
    /// - Returns: Whether the set had it.
    @discardableResult
    public func remove(_ source: MediaSource, from set: String = standardSet) async throws -> Bool {
        try await remove(cache.key(for: source), from: set)
    }

    /// Whether nothing is brought for now; what runs ends at once, to go on where it left off.
    public var isPaused: Bool {
        get { work.isPaused }
        nonmutating set { work.isPaused = newValue }
    }

    /// What the sets of a cache directory have, without opening it: also while another process has it.
    package static func inspect(_ directory: URL, encryptionKey: EncryptionKey? = nil) async throws -> [DownloadSet] {
        let downloads = try await StoredDownloads.inspect(path: directory.path, encryptionKey: encryptionKey)
        return DownloadSet.sets(of: downloads) { DownloadSet.Item($0) }
    }

    /// One for each cache.
    var work: DownloadWork {
        cache.downloadWork.withLock { held in
            if let work = held?.work as? DownloadWork { return work }
            let work = DownloadWork()
            held = MediaCache.HeldWork(work: work) { work.close() }
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
    /// What is kept for play without a network.
    public var downloads: Downloads { Downloads(cache: self) }
}

extension MediaSource {
    /// The address from which it can be gone on with, if that may be written down.
    fileprivate func addressToRemember(withQuery: Bool) -> URL? {
        guard !isResolved, headerFields.isEmpty else { return nil }
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.fragment = nil
        return parts.query == nil || withQuery ? parts.url : nil
    }
}
