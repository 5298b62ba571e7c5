import ArgumentParser

/// A time, as `90s`, `30m`, `12h` or `30d`.
struct AgeArgument: Hashable, Sendable, ExpressibleByArgument {
    var duration: Duration

    /// Reads a positive number with its unit; nil for anything else, and for more than a hundred years.
    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = argument.last.flatMap({ units[$0] }), let number = Double(argument.dropLast()),
            argument.utf8.first.map({ (48...57).contains($0) }) == true, number > 0, number * unit <= 100 * 366 * 86_400
        else { return nil }
        duration = .seconds(number * unit)
    }
}
