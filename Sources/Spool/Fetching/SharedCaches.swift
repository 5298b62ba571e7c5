import Foundation
import Logging
import SpoolStorage
import Synchronization

/// The state of a cache. All ``MediaCache``s with the same directory and configuration share it.
final class CacheCore: Sendable {
    let context: CacheContext
    let resources = OpenResources()
    /// The object that runs the downloads, or `nil` before the first download.
    let downloadWork = Mutex<(any CacheWork)?>(nil)
    private let closing = Mutex<Task<Void, Never>?>(nil)
    private let users = Mutex(Users())

    /// The number of caches that use the directory, and whether the directory must be closed after the last one.
    private struct Users {
        /// The number of caches that have been neither closed nor released. After it has reached 0, it does not change.
        var count = 1
        /// Whether any of the caches was closed rather than only released.
        var mustClose = false
    }

    init(_ context: CacheContext) { self.context = context }

    /// Adds a cache. Returns `false` if all caches have been removed.
    fileprivate func join() -> Bool {
        users.withLock { users in
            guard users.count > 0 else { return false }
            users.count += 1
            return true
        }
    }

    /// Removes a cache that was closed or released.
    ///
    /// - Returns: Whether the directory has to be closed: no cache uses it anymore, and at least one cache was closed.
    @discardableResult func leave(closing: Bool) -> Bool {
        users.withLock { users in
            users.count -= 1
            users.mustClose = users.mustClose || closing
            return users.count == 0 && users.mustClose
        }
    }

    /// Whether all caches have been closed or released.
    var isUnused: Bool { users.withLock { $0.count == 0 } }

    /// Closes the directory once, and waits until it is closed.
    func close() async {
        let closing = closing.withLock { closing in
            if let closing { return closing }
            let task = Task(executorPreference: context.executor.executor(for: .background)) { await self.closeNow() }
            closing = task
            return task
        }
        await closing.value
    }

    private func closeNow() async {
        downloadWork.withLock { $0 }?.close()
        await resources.closeAll()
        for store in await context.opening.close() {
            do {
                try await store.close()
            } catch {
                context.events.logger.warning("the cache could not be closed cleanly: \(error)")
            }
        }
        context.events.finish()
    }
}

/// The caches of this process, by directory.
///
/// The lock on a directory would also exclude a second cache in the same process. SwiftUI, for example, may create a
/// view or model, and with it a cache, many times. Such a cache therefore joins the first cache.
final class SharedCaches: Sendable {
    /// The caches of the process.
    static let process = SharedCaches()

    private struct Weak: Sendable {
        weak let core: CacheCore?
    }

    private let cores = Mutex<[String: Weak]>([:])

    /// Returns the core of the cache that is open in a directory, or a new core.
    ///
    /// - Parameter make: A function that creates a core. If its argument is an error, the core does not open the
    ///   directory.
    func core(
        for directory: URL, upstream: any Upstream, configuration: MediaCacheConfiguration,
        make: (CacheError?) -> CacheCore
    ) -> CacheCore {
        // A read-only cache does not need a lock, and stores nothing.
        if configuration.isReadOnly { return make(nil) }
        let path = directory.standardizedFileURL.resolvingSymlinksInPath().path
        return cores.withLock { cores in
            if let core = cores[path]?.core, core.join() {
                var differences = core.context.configuration.differences(from: configuration)
                if (core.context.upstream as AnyObject) !== (upstream as AnyObject) { differences.append("upstream") }
                if differences.isEmpty { return core }
                core.leave(closing: false)
                let names = differences.joined(separator: ", ")
                let text =
                    "“\(directory.path)” is open in this process with different values of \(names); share one cache"
                return make(CacheError(.directoryInUse, text))
            }
            let core = make(nil)
            cores = cores.filter { $0.value.core != nil }
            cores[path] = Weak(core: core)
            return core
        }
    }
}

extension MediaCacheConfiguration {
    /// Returns the names of the values that differ. Functions, instruments and loggers can't be compared, so they count
    /// as equal.
    func differences(from other: Self) -> [String] {
        let isSameKey = encryptionKey.map { key in other.encryptionKey.map(key.isEqual(to:)) ?? false }
        let isSameStore = byteStore.map { $0 as AnyObject } === other.byteStore.map { $0 as AnyObject }
        let equal: [(String, Bool)] = [
            ("capacity", capacity == other.capacity),
            ("encryptionKey", isSameKey ?? (other.encryptionKey == nil)),
            ("byteStore", isSameStore),
            ("freshness", freshness == other.freshness),
            ("keyPolicy", keyPolicy.isEqual(to: other.keyPolicy)),
            ("readAhead", readAhead == other.readAhead),
            ("retry", retry == other.retry),
            ("maximumConnectionsPerOrigin", maximumConnectionsPerOrigin == other.maximumConnectionsPerOrigin),
            (
                "maximumOpenConnectionsPerOrigin",
                maximumOpenConnectionsPerOrigin == other.maximumOpenConnectionsPerOrigin
            ),
            ("memoryLimit", memoryLimit == other.memoryLimit),
            ("eviction", eviction.isEqual(to: other.eviction)),
            ("evictionQuotas", evictionQuotas == other.evictionQuotas),
            ("minimumFreeSpace", minimumFreeSpace == other.minimumFreeSpace),
            ("maximumAge", maximumAge == other.maximumAge),
            ("followsRedirects", followsRedirects == other.followsRedirects),
            ("storesEveryStatus", storesEveryStatus == other.storesEveryStatus),
            ("forwardsErrors", forwardsErrors == other.forwardsErrors),
        ]
        return equal.filter { !$0.1 }.map(\.0)
    }
}

/// Work that runs for a cache, such as downloads, and ends when the cache is closed.
protocol CacheWork: AnyObject, Sendable {
    /// Cancels the work.
    func close()
}
