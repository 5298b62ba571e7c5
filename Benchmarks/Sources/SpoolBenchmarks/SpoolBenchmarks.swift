import Foundation

/// The command that runs the named benchmarks, or all of them.
///
/// Start it with `swift run -c release --package-path Benchmarks SpoolBenchmarks NAME…`. A name also selects the
/// benchmarks whose names start with it and a hyphen. For example, `scale` selects `scale-hits`.
@main
enum SpoolBenchmarks {
    /// All benchmarks. Each is a static property in its own file.
    static let all: [Benchmark] = {
        var all: [Benchmark] = [
            .ranges, .hit, .encryption, .get, .firstByte, .opening, .scaleHits, .scaleStoring, .scaleVideo, .scaleMany,
            .policies,
        ]
        #if os(Linux)
        all += [.besideLeaving, .besideStart, .besidePreloading]
        #endif
        return all
    }()

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let task = BenchmarkTask(arguments) { return try await task.run() }
        if let options = try PolicyOptions(arguments) {
            let comparison = PolicyComparison(options)
            if options.isJSON { return print(try comparison.json()) }
            for table in try comparison.report().tables { print("\(table)\n") }
            return
        }
        if let unknown = arguments.first(where: { name in !all.contains { $0.isMeant(by: name) } }) {
            let list = all.map { "  \($0.name)  \($0.summary)\n" }.joined()
            FileHandle.standardError.write(Data("error: unknown benchmark '\(unknown)', choose one of:\n\(list)".utf8))
            exit(64)
        }
        #if DEBUG
        print("(a debug build, whose results are meaningless; run with -c release)\n")
        #endif
        var goals = Table("promise", "Spool", "peer", "ratio", "goal", "met")
        for benchmark in all where arguments.isEmpty || arguments.contains(where: benchmark.isMeant) {
            print("## \(benchmark.name): \(benchmark.summary)\n")
            let report = try await benchmark.run()
            for table in report.tables { print("\(table)\n") }
            for goal in report.goals { goals.rows.append(goal.cells) }
            print("(load average afterwards: \(loadAverage()))\n")
        }
        goals.note =
            "\(ProcessInfo.processInfo.activeProcessorCount) cores. "
            + "Medians of alternating rounds; a ratio is the median of the ratios of the rounds."
        print("## promises\n\n\(goals)")
    }
}

/// A subcommand that compares Spool, in the same run, with an alternative that is available to users.
struct Benchmark: Sendable {
    var name: String
    var summary: String
    var run: @Sendable () async throws -> Report

    func isMeant(by argument: String) -> Bool { name == argument || name.hasPrefix(argument + "-") }
}

/// The results of a benchmark: its tables, and its rows in the final table of goals.
struct Report: Sendable {
    var tables: [Table] = []
    var goals: [Goal] = []
}

/// One row of the final table: a goal of the project and the measured value.
struct Goal: Sendable {
    var name: String
    var spool: String
    /// The alternative, which is measured alternately with Spool. It is empty if the goal is an absolute number.
    var peer = ""
    var ratio = ""
    var goal: String
    var isMet: Bool

    var cells: [String] { [name, spool, peer, ratio, goal, isMet ? "yes" : "NO"] }
}
