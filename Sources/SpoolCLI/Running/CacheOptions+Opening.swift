import Foundation
import Logging
import Spool
import SpoolHTTP

extension CacheOptions {
    /// Opens the cache, lends it to `body`, and closes it, whether `body` returns or throws.
    ///
    /// While another process has the directory, waits for it, up to ten seconds. Where nothing is to be fetched and no
    /// cache is there yet, `body` is not called and nothing is made.
    ///
    /// - Parameters:
    ///   - capacity: The most that the directory may keep from now on; nil leaves that as it is.
    ///   - upstream: Where bytes come from; nil for the platform's HTTP client.
    /// - Throws: The library's errors: `.directoryInUse` when the other process keeps the directory.
    func withCache<R: Sendable>(
        capacity: ByteCount? = nil, upstream: (any Upstream)? = nil,
        _ body: (MediaCache) async throws -> R
    ) async throws -> R {
        let cache = try await open(upstream ?? HTTPUpstream.standard())
        do {
            for notice in cache.notices { Output.remark("warning: " + notice) }
            if let capacity { try await cache.setCapacity(capacity.bytes) }
            let result = try await body(cache)
            await cache.close()
            return result
        } catch {
            await cache.close()
            throw error
        }
    }

    /// As ``withCache(capacity:upstream:_:)``, for what needs a cache that is there; nil if there is none, and none is made.
    func withExistingCache<R: Sendable>(_ body: (MediaCache) async throws -> R) async throws -> R? {
        guard try await contents() != nil else { return nil }
        return try await withCache(body)
    }

    /// The stored resources, read also while another process has the cache; nil where there is no cache.
    func contents(of key: CacheKey? = nil) async throws -> [CachedMedia]? {
        do {
            return try await MediaCache.inspect(directory, key: key)
        } catch let error as CacheError where error.code == .notStored {
            return nil
        }
    }

    private func open(_ upstream: any Upstream) async throws -> MediaCache {
        var configuration = MediaCache.Configuration()
        configuration.logger = logger
        let deadline = ContinuousClock.now + .seconds(10)
        var hasSaidSo = false
        while true {
            do {
                return try await MediaCache(directory: directory, upstream: upstream, configuration: configuration)
            } catch let error as CacheError where error.code == .directoryInUse && ContinuousClock.now < deadline {
                if !hasSaidSo, verbose || Output.isWatched { Output.remark("waiting: \(error.message)") }
                hasSaidSo = true
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    /// Writes to standard error if asked for, else nothing: what a person must know is said otherwise.
    private var logger: Logger {
        guard verbose else { return Logger(label: "spool") { _ in SwiftLogNoOpLogHandler() } }
        var logger = Logger(label: "spool") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .debug
        return logger
    }
}
