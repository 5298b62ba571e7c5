import Foundation

/// The plan of a play: jumps in their order, and where to stop. Decides; plays nothing.
struct PlayPlan: Sendable {
    /// The next thing to do at a moment of the play.
    enum Step: Equatable, Sendable {
        case goOn
        case jump(SeekArgument)
        case stop
    }

    private var seeks: ArraySlice<SeekArgument>
    private let until: Double?
    /// Where the play came out of its last jump, or began.
    private var origin = 0.0
    /// How fast to play.
    let rate: Double

    /// - Parameters:
    ///   - seeks: Jumps. Each is made once, when the play is at or past its `at` and those before it are made.
    ///   - until: Where to stop: when the play gets there from before, or is there once no jump is left.
    init(seeks: [SeekArgument] = [], until: Double? = nil, rate: Double = 1) {
        self.seeks = seeks[...]
        self.until = until
        self.rate = rate
    }

    /// The next step, with the play at `time` seconds. A jump that is returned counts as made.
    mutating func step(at time: Double) -> Step {
        let isToStop = until.map { time >= $0 && (origin < $0 || seeks.isEmpty) } ?? false
        if let next = seeks.first, time >= next.at, !isToStop || next.at < (until ?? .infinity) {
            seeks.removeFirst()
            origin = next.to
            return .jump(next)
        }
        return isToStop ? .stop : .goOn
    }
}

extension PlayPlan {
    /// A tour of a whole film that leaves holes on its way and fills them: from near the beginning to its last third,
    /// and a little later back and on to the end.
    static func tour(ofSeconds duration: Double) -> PlayPlan {
        let time = { (share: Double) in (duration * share * 10).rounded() / 10 }
        return PlayPlan(
            seeks: [
                SeekArgument(at: time(0.10), to: time(0.65)), SeekArgument(at: time(0.75), to: time(0.05)),
            ],
            rate: rate(forSeconds: duration))
    }

    /// How fast a demonstration plays: ten times as fast as recorded, or a film of any length in about fifteen seconds.
    static func rate(forSeconds duration: Double) -> Double { min(100, max(10, duration / 15)) }
}
