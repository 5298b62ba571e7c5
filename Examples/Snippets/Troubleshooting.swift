import SpoolAVFoundation

// Examples from docs/troubleshooting.md.

private func report(of cache: MediaCache) async {
    for await event in cache.events() {
        switch event.kind {
        case .bypassed(let reason): print("\(event.redactedURL) plays without the cache: \(reason)")
        case .notCached(let cause), .cacheUnavailable(let cause): print("\(event.redactedURL) is not cached: \(cause)")
        case .evicted(let bytes): print("\(event.redactedURL): \(bytes) bytes evicted")
        case .failed(let error): print(error)
        case .warning(let text): print(text)
        default: break
        }
    }
}

@MainActor
private func look(at item: AVPlayerItem) async throws {
    if let media = item.cachingAsset?.media {
        print(media.key, media.statistics)
        if let stored = try await media.storedResource() { print(stored.storedRanges) }
    } else {
        print("plays without the cache, or through a server")
    }
}

private func causes(of error: any Error) -> [any Error] {
    var causes = [error]
    while let last = causes.last, let next = (last as NSError).userInfo[NSUnderlyingErrorKey] as? any Error {
        causes.append(next)
    }
    return causes
}
