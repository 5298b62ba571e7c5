/// The findings of many simulated runs, grouped, with their seeds.
struct SimulationSummary: CustomStringConvertible {
    /// Findings that differ only in numbers and names.
    struct Group {
        var signature: String
        var example: Finding
        /// The seeds of the runs with this finding, in ascending order.
        var seeds: [UInt64]
        /// The number of runs up to the first one with this finding.
        var playsUntilFound: Int
    }

    var plays = 0
    var operations = 0
    var steps = 0
    /// A hash of the digests of all runs.
    var digest: UInt64 = 0
    /// The number of steps in the longest run.
    var mostSteps = 0
    var longestTime = Duration.zero
    /// The number of runs with findings.
    var failures = 0
    /// The groups of findings, the most frequent first.
    var groups: [Group] = []

    init(_ reports: [PlaybackReport]) {
        plays = reports.count
        var found: [String: Group] = [:]
        for (number, report) in reports.enumerated() {
            operations += report.operations
            steps += report.steps
            mostSteps = max(mostSteps, report.steps)
            longestTime = max(longestTime, report.time)
            digest = (digest ^ report.digest) &* 0x100_0000_01B3
            failures += report.findings.isEmpty ? 0 : 1
            for finding in report.findings {
                let signature = finding.signature
                let new = Group(signature: signature, example: finding, seeds: [], playsUntilFound: number + 1)
                if found[signature, default: new].seeds.last != report.seed {
                    found[signature, default: new].seeds.append(report.seed)
                }
            }
        }
        groups = found.values.sorted { ($1.seeds.count, $0.signature) < ($0.seeds.count, $1.signature) }
    }

    /// Returns the seeds of the runs with findings of the given kind.
    func seeds(of kind: Finding.Kind) -> [UInt64] {
        Set(groups.filter { $0.example.kind == kind }.flatMap(\.seeds)).sorted()
    }

    var description: String {
        var lines = [
            """
            \(plays) plays, \(operations) operations, \(steps) steps, \(failures) plays with findings, digest \(digest); \
            the longest took \(mostSteps) steps, or \(longestTime)
            """
        ]
        for group in groups {
            lines.append(
                "  \(group.seeds.count) plays, first the \(group.playsUntilFound)., seeds \(group.seeds.prefix(6)): \(group.example)"
            )
        }
        return lines.joined(separator: "\n")
    }
}
