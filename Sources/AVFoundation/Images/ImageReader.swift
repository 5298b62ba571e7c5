import Foundation

/// Media opened for pictures: one libmpv handle, paused, without sound. Used by one task at a time.
final class ImageReader {
    let playback: ItemPlayback
    let isRotated: Bool
    private let item: PlayerItemState
    private var events: AsyncStream<PlaybackEvent>.Iterator
    private var seeks: UInt64 = 0

    /// Begins to open the asset.
    ///
    /// - Throws: why that can't be tried.
    init(_ asset: AVURLAsset?, isRotated: Bool) throws {
        guard let asset, let source = AVPlayerItem.source(of: asset) else {
            throw AVError(.operationNotSupportedForAsset)
        }
        let item = PlayerItemState()
        let options = PlaybackOptions(
            headless: .untimed, isCustomStream: source.isStream, isFile: asset.url.isFileURL,
            userAgent: asset.userAgent, pictures: .init(isRotated: isRotated))
        guard let playback = ItemPlayback(source: source, item: item, options: options) else {
            throw item.error ?? AVError(.mediaServicesWereReset)
        }
        self.playback = playback
        self.isRotated = isRotated
        self.item = item
        events = playback.events.makeAsyncIterator()
    }

    /// Waits until it is open.
    ///
    /// - Throws: why it can't be opened.
    func open() async throws {
        _ = try await event { $0 == .ready ? true : nil }
    }

    /// The picture of a time, and when it begins, in seconds.
    ///
    /// - Throws: `AVError`, or what the asset's loader has failed of.
    func picture(at time: Double, before: Double, after: Double) async throws -> (Picture, Double) {
        guard item.isSeekable else { throw AVError(.operationNotSupportedForAsset, detail: "it can't be sought in") }
        guard var search = ImageSearch(time: time, before: before, after: after, duration: item.duration) else {
            throw AVError(.noImageAtTime)
        }
        while true {
            let found = try await snapshot(after: search.step, to: search.target)
            switch search.evaluate(found) {
            case .go: continue
            case .take:
                // The search takes none without.
                guard let picture = found.picture, let seconds = found.seconds else { throw AVError(.unknown) }
                return (picture, max(0, seconds))
            case .fail(let code):
                if playback.stream?.endsEarly == true {
                    throw AVError(.contentIsUnavailable, detail: "its bytes end before its length")
                }
                throw AVError(code)
            }
        }
    }

    /// Closes the media; when this returns, nothing is left of it.
    func close() async {
        playback.shutDown(cancelling: true)
        await item.playbacks.waitUntilNone()
    }

    private func snapshot(after step: ImageSearch.Step, to target: Double) async throws -> Snapshot {
        seeks += 1
        let id = seeks
        switch step {
        case .keyFrame: playback.seek(["seek", String(target), "absolute+keyframes"], id: id)
        case .exact(let secondsEarlier):
            playback.set([("hr-seek-demuxer-offset", String(secondsEarlier))])
            playback.seek(["seek", String(target), "absolute+exact"], id: id)
        case .previousPicture: playback.seek(["frame-back-step"], id: id)
        }
        let hasArrived = try await event { event -> Bool? in
            guard case .seekFinished(id, let isCompleted) = event else { return nil }
            return isCompleted
        }
        // What failed on the way may look like the end of the media.
        if let failure = playback.stream?.failure { throw failure }
        guard hasArrived else { throw AVError(.operationNotSupportedForAsset, detail: "it can't be sought in") }
        playback.takePicture()
        return try await event { if case .picture(let found) = $0 { found } else { nil } }
    }

    /// The next event that `body` makes something of.
    private func event<Value>(_ body: (PlaybackEvent) -> Value?) async throws -> Value {
        while let event = await events.next(isolation: #isolation) {
            if event == .failed { throw item.error ?? AVError(.unknown) }
            if event == .closed { break }
            if let value = body(event) { return value }
        }
        throw item.error ?? AVError(.mediaServicesWereReset)
    }
}
