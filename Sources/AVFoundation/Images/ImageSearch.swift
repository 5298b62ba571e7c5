/// How a picture of a time is found in media: which seeks, and whether what they lead to will do.
///
/// Pure. A seek to a key frame is the cheapest; it will do if it is within the tolerances. An exact one decodes from the
/// key frame before the time up to it and shows the first picture that begins there or later, so that the one shown at the
/// time may be that before it. In media without an index an exact seek may land too late; then it is sent anew with
/// the demuxer beginning so many seconds earlier. Times are seconds.
struct ImageSearch: Sendable, Equatable {
    /// A seek to make.
    enum Step: Sendable, Equatable {
        case keyFrame
        case exact(secondsEarlier: Double)
        case previousPicture
    }

    /// What to do with the picture that a step has led to.
    enum Decision: Sendable, Equatable {
        case take
        case go(Step)
        case fail(AVError.Code)
    }

    /// Where seeks go.
    let target: Double
    private let time: Double
    private let earliest: Double
    private let latest: Double
    private(set) var step: Step
    /// Where the picture after the one looked for begins, as an exact seek found it.
    private var next: Double?
    /// By how much the last exact seek began too early on purpose.
    private var lastSecondsEarlier: Double?

    /// libmpv takes a picture that begins a little earlier for one that begins at the time.
    private static let earlySlack = 0.0055
    /// Containers round times to milliseconds.
    private static let lateSlack = 0.001
    private static let secondsEarlier = [0.0, 2, 10, 30]

    /// - Parameters:
    ///   - time: nothing but a number has a picture.
    ///   - before: how much earlier the picture may begin than the time; not a number counts as 0, as does what is less.
    ///   - after: how much later.
    ///   - duration: how long the media is, if that is known.
    /// - Returns: nil if there is no picture at such times.
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

    /// Says what to do with what the step has led to.
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
                // The last one; it is shown for as long as others are.
                let shown = (found.pictureDuration ?? 1) * 1.5
                return time - begin < shown ? .take : .fail(.noImageAtTime)
            }
            next = begin
            return go(.previousPicture)
        case .previousPicture:
            let isPrevious = next.map { begin < $0 - Self.lateSlack } ?? false
            if isPrevious, begin <= latest + Self.lateSlack { return .take }
            let decision = earlier(orFailWith: .noImageAtTime)
            // The first one of all may begin a little later than the media.
            let isFirst = decision == .fail(.noImageAtTime) && begin - time < (found.pictureDuration ?? 0.1) * 1.5
            return isFirst ? .take : decision
        }
    }

    private func isWithinTolerances(_ begin: Double) -> Bool {
        begin >= earliest - Self.earlySlack && begin <= latest + Self.lateSlack
    }

    private mutating func earlier(orFailWith code: AVError.Code) -> Decision {
        // What began at the beginning of the media can't begin earlier.
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
