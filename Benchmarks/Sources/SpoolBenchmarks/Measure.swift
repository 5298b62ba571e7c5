/// Nanoseconds for each operation: the median of five rounds, each of which `body` makes of `operations` operations.
///
/// A round that has become too slow ends the series, so that something a thousand times slower than the rest is measured
/// once and not five times. `prepare` makes what a round works on and is not timed.
func nanoseconds<Subject>(
    operations: Int,
    prepare: () -> Subject,
    _ body: (inout Subject) -> Void
) -> Double {
    var rounds: [Double] = []
    let clock = ContinuousClock()
    let begin = clock.now
    while rounds.count < 5 && (rounds.isEmpty || begin.duration(to: clock.now) < .seconds(2)) {
        var subject = prepare()
        let duration = clock.measure { body(&subject) }
        blackHole(subject)
        rounds.append(duration / .nanoseconds(1) / Double(operations))
    }
    return rounds.sorted()[rounds.count / 2]
}

/// Uses a value in a way that the optimiser can't see through, so that what made it is not left out.
@inline(never)
@_optimize(none)
func blackHole<Value>(_ value: Value) {}

/// A generator whose numbers follow from its seed, so that each run does the same work (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
