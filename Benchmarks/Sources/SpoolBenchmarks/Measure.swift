import Foundation

/// Returns the time per operation in nanoseconds, as the median of up to five rounds. `body` performs `operations`
/// operations.
///
/// No round starts after two seconds, so a very slow operation is measured only once. `prepare` creates the subject of
/// a round, and its time is not measured.
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
    return median(rounds)
}

/// The values of one metric for Spool and for its peer, one for each round.
struct Pair: Sendable {
    var spool: [Double] = []
    var peer: [Double] = []

    /// The median of the ratios of all rounds. Other load on the machine affects both values of a ratio.
    var ratio: Double { median(zip(spool, peer).map { $0 / $1 }) }

    /// Measures Spool and its peer alternately. Spool is first in even rounds, and the peer in odd rounds.
    ///
    /// The first round of each is not counted, because it fills caches and opens connections.
    static func alternating(
        rounds: Int, spool: () async throws -> Double, peer: () async throws -> Double
    ) async throws -> Pair {
        var pair = Pair()
        _ = try await (spool(), peer())
        for round in 0..<rounds {
            if round.isMultiple(of: 2) {
                pair.spool.append(try await spool())
                pair.peer.append(try await peer())
            } else {
                pair.peer.append(try await peer())
                pair.spool.append(try await spool())
            }
        }
        return pair
    }
}

/// Returns the median. For an even number of values, it is the upper of the two middle values.
func median(_ values: [Double]) -> Double {
    values.isEmpty ? .nan : values.sorted()[values.count / 2]
}

/// Returns the time that `body` takes, in seconds.
func seconds(_ body: () async throws -> Void) async throws -> Double {
    let begin = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - begin) / .seconds(1)
}

/// Returns the load averages of one, five and fifteen minutes, which show whether the machine was busy with other work.
func loadAverage() -> String {
    var loads = [Double](repeating: 0, count: 3)
    guard getloadavg(&loads, 3) == 3 else { return "unknown" }
    return loads.map { "\(($0 * 10).rounded() / 10)" }.joined(separator: ", ")
}

/// Uses a value in a way that is opaque to the optimizer, so that its computation is not removed.
@inline(never)
@_optimize(none)
func blackHole<Value>(_ value: Value) {}

/// A random number generator with a seed, so that each run does the same work (SplitMix64).
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
