#if Tools
import ArgumentParser
import Foundation

/// The plan for a playback session: the seeks in order, and the time at which to stop. It does not control the player.
struct PlayPlan: Sendable {
    /// The next step of a playback session.
    enum Step: Equatable, Sendable {
        case proceed
        case seek(SeekArgument)
        case stop
    }

    private var seeks: ArraySlice<SeekArgument>
    private let until: Double?
    /// The target of the last seek, or 0.
    private var origin = 0.0
    /// The playback rate.
    let rate: Double

    /// Creates a plan.
    ///
    /// - Parameters:
    ///   - seeks: The seeks. Each is performed once, when playback has reached its `at` and the previous seeks have
    ///     finished.
    ///   - until: The time at which to stop. It applies when playback reaches it from an earlier time, or if no seeks
    ///     are left.
    init(seeks: [SeekArgument] = [], until: Double? = nil, rate: Double = 1) {
        self.seeks = seeks[...]
        self.until = until
        self.rate = rate
    }

    /// Returns the next step at `time` seconds. A returned seek is treated as performed.
    mutating func step(at time: Double) -> Step {
        let isToStop = until.map { time >= $0 && (origin < $0 || seeks.isEmpty) } ?? false
        if let next = seeks.first, time >= next.at, !isToStop || next.at < (until ?? .infinity) {
            seeks.removeFirst()
            origin = next.to
            return .seek(next)
        }
        return isToStop ? .stop : .proceed
    }
}

extension PlayPlan {
    /// Returns a plan that leaves missing ranges and fills them later.
    ///
    /// Near the start, playback seeks to the last third. Soon afterward, it seeks back, and then continues to the end.
    static func tour(ofSeconds duration: Double) -> PlayPlan {
        let time = { (share: Double) in (duration * share * 10).rounded() / 10 }
        return PlayPlan(
            seeks: [
                SeekArgument(at: time(0.10), to: time(0.65)), SeekArgument(at: time(0.75), to: time(0.05)),
            ],
            rate: rate(forSeconds: duration))
    }

    /// Returns the rate of the demonstration. It is 10, or up to 100 if that is necessary to play the media in about 15
    /// seconds.
    static func rate(forSeconds duration: Double) -> Double { min(100, max(10, duration / 15)) }
}

/// A seek during playback: `AT:TO`, both in seconds of media time.
struct SeekArgument: Hashable, Sendable, ExpressibleByArgument {
    var at: Double
    var to: Double

    init(at: Double, to: Double) {
        self.at = at
        self.to = to
    }

    /// Parses `AT:TO`. The result is `nil` unless both values are nonnegative numbers.
    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let at = Double(parts[0]), let to = Double(parts[1]), at.isFinite, to.isFinite,
            at >= 0, to >= 0
        else { return nil }
        self.init(at: at, to: to)
    }
}
#endif
