import Foundation

/// The options of `policies` on the command line.
struct PolicyOptions: Sendable {
    /// The trace files. If there are none, the seeded traces are used.
    var files: [String] = []
    /// The capacities, as percentages of the footprint.
    var capacities: [Double] = [1, 5, 20]
    var isJSON = false

    /// Parses the options. The result is `nil` unless the arguments start with `policies` and an option.
    ///
    /// - Throws: ``BenchmarkError`` for an unknown option or an invalid value.
    init?(_ arguments: [String]) throws {
        guard arguments.count > 1, arguments[0] == "policies", arguments[1].hasPrefix("--") else { return nil }
        var rest = arguments.dropFirst()
        while let option = rest.popFirst() {
            switch option {
            case "--json": isJSON = true
            case "--trace":
                guard let file = rest.popFirst() else { throw BenchmarkError("--trace requires a file") }
                files.append(file)
            case "--capacity":
                guard let percent = rest.popFirst().flatMap(Double.init), percent > 0, percent <= 100 else {
                    throw BenchmarkError("--capacity requires a percentage above 0 and at most 100")
                }
                capacities = [percent]
            default: throw BenchmarkError("unknown option “\(option)” of “policies”")
            }
        }
    }

    init() {}

    /// Returns functions that create the traces, because some seeded traces are large.
    func traces() throws -> [@Sendable () -> PlayTrace] {
        guard !files.isEmpty else { return PlayTraces.all }
        return try files.map { file in
            let trace = try PlayTrace(file: file)
            return { trace }
        }
    }
}
