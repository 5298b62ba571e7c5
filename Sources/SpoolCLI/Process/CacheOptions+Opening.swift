#if Tools
import Foundation
import Logging
import Spool
import SpoolHTTP

extension CacheOptions {
    /// Opens the cache, passes it to `body`, and closes it, even if `body` throws.
    ///
    /// If another process uses the directory, this method waits for up to ten seconds; see ``openWhenFree(_:)``.
    ///
    /// - Parameters:
    ///   - capacity: The new capacity of the directory, or `nil` to leave it unchanged.
    ///   - upstream: The transport, or `nil` for the platform's HTTP client.
    /// - Throws: `CacheError`, with code `.directoryInUse` if the other process does not close the directory.
    ///   ``AdvisedError`` if a server runs the command and `capacity` is set.
    func withCache<R: Sendable>(
        capacity: CapacityOptions.Capacity? = nil, upstream: (any Upstream)? = nil,
        _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        if let serverCache = Self.serverCache {
            try rejectCapacity(capacity)
            return try await body(serverCache)
        }
        return try await use(try await openWhenFree(upstream), capacity: capacity, body)
    }

    /// Opens a cache, which may be read-only, and passes it to `body`.
    ///
    /// If a server uses the directory, stored bytes are read from the directory, and missing ranges are fetched through
    /// the server.
    ///
    /// - Parameter isPreload: Whether no player is waiting for the bytes. If so, the server gives priority to its
    ///   players.
    func withCacheOrServer<R: Sendable>(
        capacity: CapacityOptions.Capacity? = nil, upstream: (any Upstream)? = nil, isPreload: Bool = false,
        _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        do {
            return try await withCache(capacity: capacity, upstream: upstream, body)
        } catch let server as RunningServer {
            return try await use(try await open(beside: server, capacity, isPreload: isPreload), body)
        }
    }

    /// Opens a cache that reads stored bytes, and fetches missing ranges through the server that uses the directory.
    ///
    /// - Throws: ``AdvisedError`` if `capacity` is set.
    func open(
        beside server: RunningServer, _ capacity: CapacityOptions.Capacity?, isPreload: Bool = false
    ) async throws -> MediaCache {
        try rejectCapacity(capacity)
        return try await openNow(server.upstream(isPreload: isPreload)) { $0.isReadOnly = true }
    }

    /// Rejects a new capacity, because a server uses the directory.
    private func rejectCapacity(_ capacity: CapacityOptions.Capacity?) throws {
        guard capacity != nil else { return }
        throw AdvisedError(
            .directoryInUse,
            "--capacity can't be used while a server uses the cache; restart the server with --capacity, or change the "
                + "capacity on its live page", advice: nil)
    }

    /// Passes an existing cache to `body`. If there is no cache, returns `nil` and does not create one.
    func withExistingCache<R: Sendable>(_ body: (MediaCache) async throws -> R) async throws -> R? {
        if let serverCache = Self.serverCache { return try await body(serverCache) }
        do {
            // A key is enough to find out whether there is a cache. The other rows are not read.
            guard try await contents(of: CacheKey(hash: "")) != nil else { return nil }
        } catch let error as CacheError where error.code == .catalogDamaged {
            // The cache exists. When it is opened, the damaged catalog is moved aside and reported.
        }
        return try await withCache(body)
    }

    /// Rejects an output file inside the cache directory, because it could replace a file of the cache.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable`.
    func rejectOutputInCache(_ path: String) throws {
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
            .unwritable, "“\(path)” can't be written, because it is in the cache's own directory; choose another one")
    }

    /// Reports on standard error that the directory does not contain a cache. Without the message, the output would
    /// look the same as for an empty cache.
    func reportMissingCache() { Output.remark("there is no cache in “\(directory.path.shown)”") }

    /// Passes an open cache to `body`, and closes it.
    func use<R: Sendable>(
        _ cache: MediaCache, capacity: CapacityOptions.Capacity? = nil, _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        do {
            for notice in cache.notices { Warning.opening.report(notice) }
            if let capacity { try await cache.rememberCapacity(capacity.inLibrary) }
            let result = try await body(cache)
            await cache.close()
            return result
        } catch {
            await cache.close()
            throw error
        }
    }

    /// Returns the stored resources, even while another process uses the cache, or `nil` if there is no cache.
    func contents(of key: CacheKey? = nil) async throws -> [StoredResource]? {
        do {
            return try await MediaCache.inspect(directory, key: key, encryptionKey: keys.key())
        } catch let error as CacheError where error.code == .notStored {
            return nil
        }
    }

    /// Opens the cache.
    ///
    /// - Parameter configure: A function that changes the configuration.
    /// - Throws: `CacheError` with code `.directoryInUse` if another process uses the directory.
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

    /// Opens the cache. If another process uses the directory, this method reports it immediately and waits for up to
    /// ten seconds.
    ///
    /// - Throws: ``RunningServer`` if that process is a server, which can run commands.
    func openWhenFree(_ upstream: (any Upstream)? = nil) async throws -> MediaCache {
        let upstream = upstream ?? HTTPUpstream.standard()
        let deadline = ContinuousClock.now + .seconds(10)
        var hasSaidSo = false
        while true {
            do {
                return try await openNow(upstream)
            } catch let error as CacheError where error.code == .directoryInUse && ContinuousClock.now < deadline {
                if let server = RunningServer(of: directory) { throw server }
                if !hasSaidSo { Output.remark("waiting for up to ten seconds: \(error.message)") }
                hasSaidSo = true
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    /// The logger. With `--verbose`, it writes to standard error; otherwise, it writes nothing. Errors and warnings are
    /// reported separately.
    var logger: Logger {
        guard verbose else { return Logger(label: "spool") { _ in SwiftLogNoOpLogHandler() } }
        return Logger(label: "spool") { _ in ErrorLog() }
    }

    /// The logger of a server, which writes to standard error: everything with `--verbose`, otherwise warnings.
    var serverLogger: Logger {
        Logger(label: "spool") { [verbose] _ in ErrorLog(logLevel: verbose ? .debug : .warning) }
    }
}

/// The log of `--verbose`: one line on standard error for each message.
struct ErrorLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let facts = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        Output.remark("\(event.level): \(event.message)\(facts)")
    }
}
#endif
