/// A cache's secret, and while it is given another one, the one before.
struct CacheSecrets: Sendable {
    var current: CacheSecret
    var former: CacheSecret?

    init(_ current: CacheSecret, former: CacheSecret? = nil) {
        self.current = current
        self.former = former
    }

    /// The secret that has a number and whose blocks lie so; nil if it is not known.
    func secret(_ number: Int64, format: Int64) -> CacheSecret? {
        [current, former].compactMap { $0 }.first { $0.number == number && $0.format.rawValue == format }
    }
}
