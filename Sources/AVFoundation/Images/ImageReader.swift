import Foundation

/// A reader of still images from media that a paused libmpv handle has opened, without audio output. Only one task may
/// use the reader at a time.
final class ImageReader {
    let playback: ItemPlayback
    let isRotated: Bool
    private let item: PlayerItemState
    private var events: AsyncStream<PlaybackEvent>.Iterator
    private var seeks: UInt64 = 0

    /// Creates a reader and starts opening the asset.
    ///
    /// - Throws: An error if the asset has no URL, or if libmpv cannot be started.
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

    /// Waits until the media is open.
    ///
    /// - Throws: The error that occurred when the media was opened.
    func open() async throws {
        _ = try await event { $0 == .ready ? true : nil }
    }

    /// Returns the image at a time, and the start time of the image in seconds.
    ///
    /// - Throws: `AVError`, or the error from the asset's loader.
    func picture(at time: Double, before: Double, after: Double) async throws -> (Picture, Double) {
        guard item.isSeekable else { throw AVError(.operationNotSupportedForAsset, detail: "seeking is not possible") }
        guard var search = ImageSearch(time: time, before: before, after: after, duration: item.duration) else {
            throw AVError(.noImageAtTime)
        }
        while true {
            let found = try await snapshot(after: search.step, to: search.target)
            switch search.evaluate(found) {
            case .go: continue
            case .take:
                // The search accepts only results that contain both an image and its time.
                guard let picture = found.picture, let seconds = found.seconds else { throw AVError(.unknown) }
                return (picture, max(0, seconds))
            case .fail(let code):
                if playback.stream?.endsEarly == true {
                    throw AVError(.contentIsUnavailable, detail: "the data ends before the stated length")
                }
                throw AVError(code)
            }
        }
    }

    /// Closes the media, and returns after all its resources are released.
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
        // A stream error may look like the end of the media.
        if let failure = playback.stream?.failure { throw failure }
        guard hasArrived else { throw AVError(.operationNotSupportedForAsset, detail: "seeking is not possible") }
        playback.takePicture()
        return try await event { if case .picture(let found) = $0 { found } else { nil } }
    }

    /// Returns the next event for which `body` returns a value.
    private func event<Value>(_ body: (PlaybackEvent) -> Value?) async throws -> Value {
        while let event = await events.next(isolation: #isolation) {
            if event == .failed { throw item.error ?? AVError(.unknown) }
            if event == .closed { break }
            if let value = body(event) { return value }
        }
        throw item.error ?? AVError(.mediaServicesWereReset)
    }
}

/// The search for the image at a time. It decides which seeks to perform, and whether their results are acceptable.
///
/// This type only makes decisions. A seek to a key frame is fastest and suffices within the tolerances. An exact seek
/// decodes from the key frame before the time, and finds the first image that starts at or after that time. The image
/// shown at the requested time may then be the previous one. Without an index, an exact seek may end too late. If so,
/// the seek is repeated, and the demuxer starts earlier. Times are in seconds.
struct ImageSearch: Sendable, Equatable {
    /// The next seek.
    enum Step: Sendable, Equatable {
        case keyFrame
        case exact(secondsEarlier: Double)
        case previousPicture
    }

    /// The decision on the result of a step.
    enum Decision: Sendable, Equatable {
        case take
        case go(Step)
        case fail(AVError.Code)
    }

    /// The target of the seeks, in seconds.
    let target: Double
    private let time: Double
    private let earliest: Double
    private let latest: Double
    private(set) var step: Step
    /// The start of the image after the requested one, as found by an exact seek.
    private var next: Double?
    /// The number of seconds by which the last exact seek deliberately started early.
    private var lastSecondsEarlier: Double?

    /// The maximum time by which an image that libmpv accepts may start before the target, in seconds.
    private static let earlySlack = 0.0055
    /// The tolerance for times, in seconds. It is needed because containers round times to milliseconds.
    private static let lateSlack = 0.001
    private static let secondsEarlier = [0.0, 2, 10, 30]

    /// Creates a search.
    ///
    /// - Parameters:
    ///   - time: The requested time, which must be finite.
    ///   - before: The maximum time by which the image may precede `time`. A negative value or NaN is treated as 0.
    ///   - after: The maximum time by which the image may follow `time`. A negative value or NaN is treated as 0.
    ///   - duration: The duration of the media, if known.
    /// - Returns: `nil` if `time` is not finite, or if the media cannot contain an image within the tolerances.
    init?(time: Double, before: Double, after: Double, duration: Double?) {
        guard time.isFinite else { return nil }
        let end = duration.map { $0 > 0 ? $0 : .infinity } ?? .infinity
        self.time = time
        earliest = time - (before > 0 ? before : 0)
        latest = time + (after > 0 ? after : 0)
        guard latest >= 0, earliest < end else { return nil }
        target = min(max(time, 0), end, 1e9)
        step = before > 0 ? .keyFrame : .exact(secondsEarlier: 0)
        if case .exact(let seconds) = step { lastSecondsEarlier = seconds }
    }

    /// Decides how to continue after a step, based on its result.
    mutating func evaluate(_ found: Snapshot) -> Decision {
        guard found.picture != nil, !found.isAtEnd, let begin = found.seconds else {
            return earlier(orFailWith: found.picture == nil ? .decodeFailed : .noImageAtTime)
        }
        switch step {
        case .keyFrame:
            return isWithinTolerances(begin) ? .take : go(.exact(secondsEarlier: 0))
        case .exact:
            if isWithinTolerances(begin) { return .take }
            if begin < time {
                // This is the last image. It is assumed to be shown for less than 1.5 times the average duration of an
                // image.
                let shown = (found.pictureDuration ?? 1) * 1.5
                return time - begin < shown ? .take : .fail(.noImageAtTime)
            }
            next = begin
            return go(.previousPicture)
        case .previousPicture:
            let isPrevious = next.map { begin < $0 - Self.lateSlack } ?? false
            if isPrevious, begin <= latest + Self.lateSlack { return .take }
            let decision = earlier(orFailWith: .noImageAtTime)
            // The first image may start slightly after the start of the media.
            let isFirst = decision == .fail(.noImageAtTime) && begin - time < (found.pictureDuration ?? 0.1) * 1.5
            return isFirst ? .take : decision
        }
    }

    private func isWithinTolerances(_ begin: Double) -> Bool {
        begin >= earliest - Self.earlySlack && begin <= latest + Self.lateSlack
    }

    private mutating func earlier(orFailWith code: AVError.Code) -> Decision {
        // A seek that started at the start of the media cannot start any earlier.
        guard lastSecondsEarlier.map({ $0 < target }) ?? true,
            let seconds = Self.secondsEarlier.first(where: { $0 > lastSecondsEarlier ?? -1 })
        else { return .fail(code) }
        return go(.exact(secondsEarlier: seconds))
    }

    private mutating func go(_ step: Step) -> Decision {
        self.step = step
        if case .exact(let seconds) = step { lastSecondsEarlier = seconds }
        return .go(step)
    }
}
