/// Seeded random numbers (SplitMix64; Steele, Lea and Flood, 2014): a run that drew them can be run again from its seed.
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Numbers that follow from `seed`; those of neighbouring seeds have nothing to do with each other.
    package init(_ seed: UInt64) { state = Self.mix(seed &+ 0x5851_F42D_4C95_7F2D) }

    /// The next 64 bits.
    package mutating func next() -> UInt64 {
        // By this constant, the states of seeds that were not mixed would be those of their neighbours, one step on.
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var word = value
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// A number from 0 to below `bound`, which must be positive.
    package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    /// True once in `count` times; never for 0.
    package mutating func chance(_ count: Int) -> Bool { count > 0 && below(count) == 0 }

    /// One of `choices`, which must not be empty.
    package mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }

    /// A generator of its own, so that what one part of a run draws does not change what another one does.
    package mutating func fork() -> SplitMix { SplitMix(next()) }
}
