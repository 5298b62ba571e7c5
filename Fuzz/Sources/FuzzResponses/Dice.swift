/// Seeded random numbers (SplitMix64), so that a case can be repeated from its seed.
struct Dice {
    private var state: UInt64

    init(_ seed: UInt64) { state = Self.mix(seed &+ 0x5851_F42D_4C95_7F2D) }

    private static func mix(_ value: UInt64) -> UInt64 {
        var word = value
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    /// Returns a number that is at least 0 and less than `bound`.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

    /// Returns true with a probability of 1 in `count`.
    mutating func chance(_ count: Int) -> Bool { below(count) == 0 }

    /// Returns one of `choices`, which must not be empty.
    mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    /// Returns a new generator.
    mutating func fork() -> Dice { Dice(next()) }
}
