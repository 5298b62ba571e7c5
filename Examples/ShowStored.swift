import SpoolAVFoundation

/// Returns one line of text for each stored resource, for example for a list of downloads.
func lines(of cache: MediaCache) async throws -> [String] {
    try await cache.storedResources().map { stored in
        let size = stored.storedByteCount.formatted(.number)
        return "\(stored.redactedURL): \(size) bytes, \(stored.isComplete ? "complete" : "incomplete")"
    }
}

/// Shows the stored fraction of a resource now and after each change, until the resource is complete.
nonisolated(nonsending) func watch(_ media: MediaResource, show: (Double) -> Void) async {
    for await state in media.states {
        show(state.fractionCompleted ?? 0)
        if state.isComplete { return }
    }
}
