import Foundation

/// What `swift run -c release --package-path Benchmarks SpoolBenchmarks NAME…` starts: the named benchmarks, or all.
///
/// A name's first words stand for all that begin with them: `scale` for `scale-hits` and its like.
@main
enum SpoolBenchmarks {
    /// A benchmark is a file with one of these; add it here.
    static let all: [Benchmark] = {
        var all: [Benchmark] = [
            .ranges, .hit, .encryption, .get, .firstByte, .opening, .scaleHits, .scaleLanding, .scaleFilm, .scaleMany,
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
            FileHandle.standardError.write(Data("error: no benchmark '\(unknown)'; there are:\n\(list)".utf8))
            exit(64)
        }
        #if DEBUG
        print("(a debug build: the figures say nothing; run with -c release)\n")
        #endif
        var promises = Table("promise", "Spool", "peer", "ratio", "goal", "met")
        for benchmark in all where arguments.isEmpty || arguments.contains(where: benchmark.isMeant) {
            print("## \(benchmark.name): \(benchmark.summary)\n")
            let report = try await benchmark.run()
            for table in report.tables { print("\(table)\n") }
            for promise in report.promises { promises.rows.append(promise.cells) }
            print("(load average afterwards: \(loadAverage()))\n")
        }
        promises.note =
            "\(ProcessInfo.processInfo.activeProcessorCount) cores. "
            + "Medians of alternating rounds; a ratio is the median of the rounds' own ratios."
        print("## promises\n\n\(promises)")
    }
}

/// One subcommand: something measured beside what a user would take instead, in the same run.
struct Benchmark: Sendable {
    var name: String
    var summary: String
    var run: @Sendable () async throws -> Report

    func isMeant(by argument: String) -> Bool { name == argument || name.hasPrefix(argument + "-") }
}

/// What a benchmark found: its own tables, and its lines in the table of promises that ends a run.
struct Report: Sendable {
    var tables: [Table] = []
    var promises: [Promise] = []
}

/// One line of the closing table: what the project promises, beside what was measured.
struct Promise: Sendable {
    var name: String
    var spool: String
    /// What Spool is held against, measured in alternation with it; empty where the goal is a number by itself.
    var peer = ""
    var ratio = ""
    var goal: String
    var isMet: Bool

    var cells: [String] { [name, spool, peer, ratio, goal, isMet ? "yes" : "NO"] }
}
