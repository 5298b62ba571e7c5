public import HTTPTypes

extension MediaResource {
    /// Returns a stream of this resource's future events, such as stored ranges, completion, eviction or failure. It is
    /// like the stream from ``MediaCache/events()``, but contains the events of this resource only.
    ///
    /// For the current state, see the first value of ``states``. The stream keeps the resource open until it is
    /// released.
    public func events() -> AsyncStream<CacheEvent> {
        guard let resource else { return AsyncStream { nil } }
        let queue = resource.context.events.listen { $0 == resource.key || $0 == resource.usage.storageKey }
        return AsyncStream { [self] in await next(of: queue) }
    }

    private func next(of queue: EventQueue) async -> CacheEvent? { await queue.next() }

    /// Returns the header fields of the stored response, as updated by later responses. They do not include cookies,
    /// credentials or fields that describe the transport. Returns `nil` if nothing is stored. No request is sent to the
    /// origin.
    ///
    /// - Throws: `CacheError` with code `.closed`; `CancellationError`. Under ``FreshnessPolicy/http``, also the errors
    ///   from the source's resolver.
    public func storedHeaderFields() async throws -> HTTPFields? {
        let resource = try await opened()
        return resource.generation.map { resource.headers.response(of: $0).fields }
    }
}
