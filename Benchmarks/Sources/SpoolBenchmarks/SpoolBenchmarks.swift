import Foundation

/// What `swift run -c release --package-path Benchmarks SpoolBenchmarks NAME…` starts: the named benchmarks, or all.
@main
enum SpoolBenchmarks {
    /// A benchmark is a file with one of these; add it here.
    static let all: [Benchmark] = [
        .ranges
    ]

    static func main() async throws {
        let names = CommandLine.arguments.dropFirst()
        let known = Set(all.map(\.name))
        if let unknown = names.first(where: { !known.contains($0) }) {
            let list = all.map { "  \($0.name)  \($0.summary)\n" }.joined()
            FileHandle.standardError.write(Data("error: no benchmark '\(unknown)'; there are:\n\(list)".utf8))
            exit(64)
        }
        #if DEBUG
        print("(a debug build: the figures say nothing; run with -c release)\n")
        #endif
        for benchmark in all where names.isEmpty || names.contains(benchmark.name) {
            print("## \(benchmark.name): \(benchmark.summary)\n")
            for table in try await benchmark.run() {
                print(table)
                print()
            }
        }
    }
}

/// One subcommand: something measured beside what a user would take instead, in the same run.
struct Benchmark: Sendable {
    var name: String
    var summary: String
    var run: @Sendable () async throws -> [Table]
}
