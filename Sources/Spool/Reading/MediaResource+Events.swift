public import HTTPTypes

extension MediaResource {
    /// What happens from now on to this media file: loaded, completed, evicted, failed. As ``MediaCache/events()``, of this
    /// one alone.
    ///
    /// What is there now is ``states``' first value. The stream keeps the resource open until it is let go of.
    public func events() -> AsyncStream<CacheEvent> {
        guard let resource else { return AsyncStream { nil } }
        let queue = resource.context.events.listen { $0 == resource.key || $0 == resource.usage.storageKey }
        return AsyncStream { [self] in await next(of: queue) }
    }

    private func next(of queue: EventQueue) async -> CacheEvent? { await queue.next() }

    /// The header fields under which the origin sent what is kept, as later responses have updated them; without cookies,
    /// credentials, and those of the transport. Nil where nothing is kept; the origin is not asked.
    ///
    /// - Throws: `CacheError` with code `.closed`; `CancellationError`; under ``FreshnessPolicy/http`` what the source's
    ///   resolver throws.
    public func storedHeaderFields() async throws -> HTTPFields? {
        let resource = try await opened()
        return resource.generation.map { resource.headers.response(of: $0).fields }
    }
}
