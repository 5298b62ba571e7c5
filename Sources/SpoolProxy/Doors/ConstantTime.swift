#if Proxy
/// Compares secrets.
enum ConstantTime {
    /// Whether both are the same, in a time that depends on their lengths alone, so that nobody finds a token byte by byte.
    static func areEqual(_ one: some Collection<UInt8>, _ other: some Collection<UInt8>) -> Bool {
        guard one.count == other.count else { return false }
        var difference: UInt8 = 0
        for (a, b) in zip(one, other) { difference |= a ^ b }
        return difference == 0
    }
}
#endif
