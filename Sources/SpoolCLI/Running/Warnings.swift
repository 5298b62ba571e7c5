import Spool

/// Says on standard error what a person must know of a fetch that goes on nevertheless, each kind once.
struct Warnings: Sendable {
    private let task: Task<Void, Never>

    /// Listens to what happens in `cache`, until it is closed.
    ///
    /// - Parameter heard: Told of everything else, too.
    init(of cache: MediaCache, heard: @escaping @Sendable (CacheEvent) -> Void = { _ in }) {
        task = Task { [events = cache.events(), isReadOnly = cache.readOnlyReason != nil] in
            // Where nothing at all is kept, that was told when the cache was opened.
            var told: Set<Warning> = isReadOnly ? [.notKept] : []
            for await event in events {
                heard(event)
                guard let (kind, text) = Self.text(of: event), told.insert(kind).inserted else { continue }
                kind.tell(text)
            }
        }
    }

    private static func text(of event: CacheEvent) -> (kind: Warning, text: String)? {
        switch event.kind {
        // A sentence that names the media says already that it is not kept.
        case .notKept(let cause) where cause.message.hasPrefix(event.address): (.notKept, cause.message)
        case .notKept(let cause): (.notKept, "\(event.address) is not being kept: \(cause.message)")
        case .changed(let reason): (.changed, "\(event.address) has changed at its origin: \(reason)")
        case .blocksDropped: (.damaged, "stored bytes of \(event.address) were damaged; they are fetched again")
        default: nil
        }
    }

    /// Waits until all that has happened is told; the cache is closed by then.
    func end() async { await task.value }
}
