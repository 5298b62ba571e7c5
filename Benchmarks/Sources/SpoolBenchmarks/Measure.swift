import Foundation

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
    return median(rounds)
}

/// The same figure of Spool and of its peer, round by round.
struct Pair: Sendable {
    var spool: [Double] = []
    var peer: [Double] = []

    /// The median of each round's own ratio, so that what else the machine does falls on both sides of it.
    var ratio: Double { median(zip(spool, peer).map { $0 / $1 }) }

    /// Measures Spool and its peer by turns, the one first in even rounds, the other in odd ones.
    ///
    /// One round before, of both, is not counted: it fills caches and connections.
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

/// The value in the middle; the upper of the two where the number is even.
func median(_ values: [Double]) -> Double {
    values.isEmpty ? .nan : values.sorted()[values.count / 2]
}

/// Seconds that `body` takes.
func seconds(_ body: () async throws -> Void) async throws -> Double {
    let begin = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - begin) / .seconds(1)
}

/// The machine's load over one, five and fifteen minutes: what else was going on while figures were taken.
func loadAverage() -> String {
    var loads = [Double](repeating: 0, count: 3)
    guard getloadavg(&loads, 3) == 3 else { return "unknown" }
    return loads.map { "\(($0 * 10).rounded() / 10)" }.joined(separator: ", ")
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
