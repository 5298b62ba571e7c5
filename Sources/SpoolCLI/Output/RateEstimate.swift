/// How fast something goes, over its last few seconds.
struct RateEstimate: Sendable {
    private var samples: [(seconds: Double, bytes: Int64)] = []

    /// Takes note that at `seconds` so many bytes were done, and says the rate in bytes a second; nil at first.
    mutating func note(_ bytes: Int64, at seconds: Double) -> Double? {
        samples.append((seconds, bytes))
        while samples.count > 2, samples[1].seconds < seconds - 5 { samples.removeFirst() }
        guard let first = samples.first, seconds - first.seconds > 0.2 else { return nil }
        return Double(bytes - first.bytes) / (seconds - first.seconds)
    }
}
