import SpoolAVFoundation

/// Shows users why media does not play or is not cached.
nonisolated(nonsending) func report(of cache: MediaCache, show: (String) -> Void) async {
    for await event in cache.events() {
        switch event.kind {
        case .retrying(let delay, let cause):
            show("Retrying in \(delay.formatted(.units())): \(cause.localizedDescription)")
        case .failed(let error) where error.httpStatus == 404: show("\(event.redactedURL) was not found.")
        case .failed(let error): show(error.localizedDescription)
        case .notCached(let cause), .cacheUnavailable(let cause): show("Not cached: \(cause.localizedDescription)")
        default: break  // Other events, including future ones.
        }
    }
}
