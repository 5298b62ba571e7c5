import Foundation
import Logging
import Spool
import SpoolHTTP

extension CacheOptions {
    /// Opens the cache, lends it to `body`, and closes it, whether `body` returns or throws.
    ///
    /// While another process has the directory, waits for it, up to ten seconds; see ``openWhenFree(_:)``.
    ///
    /// - Parameters:
    ///   - capacity: The most that the directory may keep from now on; nil leaves that as it is.
    ///   - upstream: Where bytes come from; nil for the platform's HTTP client.
    /// - Throws: The library's errors: `.directoryInUse` when the other process keeps the directory.
    func withCache<R: Sendable>(
        capacity: RoomOptions.Capacity? = nil, upstream: (any Upstream)? = nil,
        _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        if let lent = Self.lent { return try await body(lent) }
        return try await use(try await openWhenFree(upstream), capacity: capacity, body)
    }

    /// As ``withCache(capacity:upstream:_:)``, for what only reads: while a server has the directory, beside it, and what is
    /// not stored comes through the server.
    ///
    /// - Parameter isPreload: Whether nobody waits for that: the server's players go first.
    func withCacheOrServer<R: Sendable>(
        capacity: RoomOptions.Capacity? = nil, upstream: (any Upstream)? = nil, isPreload: Bool = false,
        _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        do {
            return try await withCache(capacity: capacity, upstream: upstream, body)
        } catch let server as HoldingServer {
            return try await use(try await open(beside: server, isPreload: isPreload), body)
        }
    }

    /// A cache that reads what is stored, and gets the rest through the server that has the directory.
    func open(beside server: HoldingServer, isPreload: Bool = false) async throws -> MediaCache {
        try await openNow(server.upstream(isPreload: isPreload)) { $0.isReadOnly = true }
    }

    /// As ``withCache(capacity:upstream:_:)``, for what needs a cache that is there; nil if there is none, and none is made.
    func withExistingCache<R: Sendable>(_ body: (MediaCache) async throws -> R) async throws -> R? {
        do {
            guard try await contents() != nil else { return nil }
        } catch let error as CacheError where error.code == .catalogDamaged {
            // There is one; opening it sets the catalog aside, and says so.
        }
        return try await withCache(body)
    }

    /// Refuses a file to write that would lie among the cache's own, where it could take the place of one.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable`.
    func refuseWithinCache(_ path: String) throws {
        func real(_ path: String) -> String? {
            realpath(path, nil).map { name in
                defer { free(name) }
                return String(cString: name)
            }
        }
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard let folder = real(directory.path), let place = real(path) ?? real(parent) else { return }
        guard place == folder || place.hasPrefix(folder + "/") else { return }
        throw CommandFailure(
            .unwritable, "“\(path)” can't be written: it is in the cache's own directory; name a place outside of it")
    }

    /// Says on standard error that the directory holds no cache: nothing in the output tells that from an empty one.
    func tellOfNoCache() { Output.remark("there is no cache in “\(directory.path.shown)”") }

    /// Lends an open cache to `body` and closes it.
    func use<R: Sendable>(
        _ cache: MediaCache, capacity: RoomOptions.Capacity? = nil, _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        do {
            for notice in cache.notices { Warning.opening.tell(notice) }
            if let capacity { try await cache.rememberCapacity(capacity.inLibrary) }
            let result = try await body(cache)
            await cache.close()
            return result
        } catch {
            await cache.close()
            throw error
        }
    }

    /// The stored resources, read also while another process has the cache; nil where there is no cache.
    func contents(of key: CacheKey? = nil) async throws -> [StoredResource]? {
        do {
            return try await MediaCache.inspect(directory, key: key, encryptionKey: keys.key())
        } catch let error as CacheError where error.code == .notStored {
            return nil
        }
    }

    /// Opens the cache.
    ///
    /// - Throws: `CacheError`: `.directoryInUse` when another process has the directory.
    ///
    /// - Parameter configure: What else the cache is told.
    func openNow(
        _ upstream: (any Upstream)? = nil, _ configure: (inout MediaCache.Configuration) -> Void = { _ in }
    ) async throws -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.logger = logger
        configuration.capacity = .remembered
        configuration.encryptionKey = try keys.key()
        configure(&configuration)
        return try await MediaCache.opened(
            directory: directory, upstream: upstream ?? HTTPUpstream.standard(), configuration: configuration)
    }

    /// Opens the cache; while another process has the directory, says at once which, and waits up to ten seconds.
    ///
    /// - Throws: ``HoldingServer`` where that process is a server, which can be asked.
    func openWhenFree(_ upstream: (any Upstream)? = nil) async throws -> MediaCache {
        let upstream = upstream ?? HTTPUpstream.standard()
        let deadline = ContinuousClock.now + .seconds(10)
        var hasSaidSo = false
        while true {
            do {
                return try await openNow(upstream)
            } catch let error as CacheError where error.code == .directoryInUse && ContinuousClock.now < deadline {
                if let server = HoldingServer(of: directory) { throw server }
                if !hasSaidSo { Output.remark("waiting for up to ten seconds: \(error.message)") }
                hasSaidSo = true
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    /// Writes to standard error if asked for, else nothing: what a person must know is said otherwise.
    private var logger: Logger {
        guard verbose else { return Logger(label: "spool") { _ in SwiftLogNoOpLogHandler() } }
        return Logger(label: "spool") { _ in ErrorLog() }
    }
}
