import SpoolAVFoundation

// Examples from docs/guides/preload-media.md.

@MainActor
private final class ProgressBar {
    var progress = 0.0
}

@MainActor
private func preload(_ playlist: [URL], and url: URL, to cache: MediaCache, showing bar: ProgressBar) async {
    cache.preload(playlist.map { MediaSource(url: $0) })

    let preloader = Preloader(cache, maximumConcurrentDownloads: 2)
    let next = preloader.add(MediaSource(url: url), .seconds(30), priority: .high)
    for await state in next.states { bar.progress = state.fractionCompleted ?? 0 }
    next.cancel()
}
