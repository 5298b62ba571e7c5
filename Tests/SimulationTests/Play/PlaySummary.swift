/// What many plays found, put together: each kind of thing once, with the seeds that show it.
struct PlaySummary: CustomStringConvertible {
    /// Findings that differ in numbers and names only.
    struct Group {
        var signature: String
        var example: Finding
        /// Of the plays that found it, ascending.
        var seeds: [UInt64]
        /// How many plays it took to find it first.
        var playsUntilFound: Int
    }

    var plays = 0
    var operations = 0
    var steps = 0
    /// Stands for all that happened in all of them.
    var digest: UInt64 = 0
    /// Of the longest play.
    var mostSteps = 0
    var longestTime = Duration.zero
    /// Plays that found something.
    var failures = 0
    /// What was found, the most frequent first.
    var groups: [Group] = []

    init(_ reports: [PlayReport]) {
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

    /// Kinds of findings, with the plays that show each.
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
