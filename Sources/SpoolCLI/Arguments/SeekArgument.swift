import ArgumentParser

/// A jump during a play: `AT:TO`, both in seconds of media time.
struct SeekArgument: Hashable, Sendable, ExpressibleByArgument {
    var at: Double
    var to: Double

    init(at: Double, to: Double) {
        self.at = at
        self.to = to
    }

    /// Reads `AT:TO`; nil unless both are numbers from 0 up.
    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let at = Double(parts[0]), let to = Double(parts[1]), at.isFinite, to.isFinite,
            at >= 0, to >= 0
        else { return nil }
        self.init(at: at, to: to)
    }
}
