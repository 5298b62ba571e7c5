#if Proxy
/// What nobody can guess, in characters that may stand in a path.
enum Secret {
    /// Another one each time, of 128 random bits.
    static func drawn() -> String {
        (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
    }
}
#endif
