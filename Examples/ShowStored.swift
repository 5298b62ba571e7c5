import SpoolAVFoundation

/// A line for each resource of which something is stored, as for a list of downloads.
func lines(of cache: MediaCache) async throws -> [String] {
    try await cache.storedResources().map { stored in
        let size = stored.storedByteCount.formatted(.number)
        return "\(stored.address): \(size) bytes, \(stored.isComplete ? "complete" : "not complete yet")"
    }
}

/// What a progress bar shows of one, now and whenever it changes.
func watch(_ media: MediaResource, show: (Double) -> Void) async {
    for await state in media.states {
        show(state.fractionCompleted ?? 0)
        if state.isComplete { return }
    }
}
