import Foundation
import SpoolStorage

extension Benchmark {
    /// A comparison of Spool's eviction strategies on traces of playback.
    static let policies = Benchmark(
        name: "policies",
        summary: "eviction: fraction of cached bytes and starts, vs. the bounds"
    ) {
        try PolicyComparison(PolicyOptions()).report()
    }
}

/// A comparison of all strategies on every trace and at every capacity.
struct PolicyComparison {
    /// One row of the table, or one object in the JSON.
    struct Row: Codable, Sendable {
        var trace: String
        /// The capacity, as a percentage of the footprint.
        var capacity: Double
        var policy: String
        var isDefault: Bool
        var byteHit: Double
        var startHit: Double
        /// The number of bytes from the origin in the counted part of the trace.
        var originBytes: Int64
        var boundByteHit: Double
        var boundStartHit: Double
        var nanosecondsPerBlock: Double
    }

    /// The strategies. `isDefault` marks the default strategy of a cache.
    private static let strategies:
        [(name: String, isDefault: Bool, hasHint: Bool, make: @Sendable () -> any EvictionStrategy)] = [
            ("LRU", false, false, EvictionPolicy.leastRecentlyUsed.makeStrategy),
            ("largest first", false, false, EvictionPolicy.largestFirst.makeStrategy),
            ("standard", true, false, EvictionPolicy.standard.makeStrategy),
            ("standard, play-once hint", false, true, EvictionPolicy.standard.makeStrategy),
        ]

    private let options: PolicyOptions

    init(_ options: PolicyOptions) { self.options = options }

    func rows() throws -> [Row] {
        var rows: [Row] = []
        for make in try options.traces() {
            let trace = make()
            let footprint = trace.footprint
            for percent in options.capacities {
                let capacity = max(1, Int(Double(footprint) * percent / 100))
                let bounds = PlayBounds(trace, capacity: capacity)
                for strategy in Self.strategies {
                    var simulator = PolicySimulator(
                        trace, capacity: capacity, strategy: strategy.make(),
                        hasHint: strategy.hasHint && trace.hasOneUser)
                    let outcome = simulator.run()
                    rows.append(
                        Row(
                            trace: trace.name, capacity: percent, policy: strategy.name, isDefault: strategy.isDefault,
                            byteHit: outcome.byteHit, startHit: outcome.startHit, originBytes: outcome.originBytes,
                            boundByteHit: bounds.byteHit, boundStartHit: bounds.startHit,
                            nanosecondsPerBlock: outcome.policyNanoseconds / Double(max(1, outcome.allBlocks))))
                }
            }
        }
        return rows
    }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return String(decoding: try encoder.encode(rows()), as: UTF8.self)
    }

    func report() throws -> Report {
        let rows = try rows()
        var table = Table(
            "trace", "capacity", "policy", "bytes", "bound", "starts", "bound", "origin, MB", "ns/block",
            note: "The first fifth of the events is not counted. Starts may exceed their bound after a scan.")
        for row in rows {
            table.add(
                row.trace, "\(figure(row.capacity)) %", row.policy, decimal(row.byteHit), decimal(row.boundByteHit),
                decimal(row.startHit), decimal(row.boundStartHit), figure(Double(row.originBytes) / 1e6),
                figure(row.nanosecondsPerBlock))
        }
        guard options.files.isEmpty, options.capacities.count == 3 else { return Report(tables: [table]) }
        var means = Table("policy", "bytes ÷ bound", "starts ÷ bound", note: "Means; the bytes exclude long videos.")
        var goals: [Goal] = []
        for strategy in Self.strategies {
            let own = rows.filter { $0.policy == strategy.name }
            let bytes = mean(own.filter { !$0.trace.hasPrefix("T3") }.map { $0.byteHit / $0.boundByteHit })
            let starts = mean(own.map { $0.startHit / $0.boundStartHit })
            means.add(strategy.name, decimal(bytes), decimal(starts))
            if strategy.name.hasPrefix("standard") {
                let goal = strategy.hasHint ? 0.88 : 0.85
                goals.append(
                    Goal(
                        name: "eviction, \(strategy.name): bytes ÷ bound", spool: decimal(bytes), goal: "≥ 0.78",
                        isMet: bytes >= 0.78))
                goals.append(
                    Goal(
                        name: "eviction, \(strategy.name): starts ÷ bound", spool: decimal(starts),
                        goal: "≥ \(decimal(goal))", isMet: starts >= goal))
            }
        }
        return Report(tables: [table, means], goals: goals)
    }

    private func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(1, values.count)) }
}
