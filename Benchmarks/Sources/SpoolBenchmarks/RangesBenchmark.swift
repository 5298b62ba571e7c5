import ByteRanges
import Foundation

extension Benchmark {
    /// The operations of `ByteRangeSet`, compared with the standard library's `RangeSet` and Foundation's `IndexSet`.
    static let ranges = Benchmark(
        name: "ranges",
        summary: "ns per operation on a set of file fragments; lower is better"
    ) {
        var table = Table(
            "operation", "fragments", "ByteRangeSet", "goal", "RangeSet", "IndexSet",
            note: "Fragments of 12 KiB every 16 KiB. Medians of up to five rounds. A dash means no such operation."
        )
        var goals: [Goal] = []
        for count in [1_000, 100_000] {
            let fragments = Fragments(count: count)
            for operation in RangesOperation.all {
                let goal = count == 100_000 ? operation.goal : nil
                let measured = operation.byteRangeSet(fragments)
                if let goal {
                    goals.append(
                        Goal(
                            name: "ranges, 100,000 fragments: \(operation.name)", spool: "\(figure(measured)) ns",
                            goal: "≤ \(figure(goal)) ns", isMet: measured <= goal))
                }
                table.add(
                    operation.name,
                    figure(Double(count)),
                    figure(measured),
                    goal.map { "≤ \(figure($0))" } ?? "",
                    operation.rangeSet.map { figure($0(fragments)) } ?? "–",
                    operation.indexSet.map { figure($0(fragments)) } ?? "–"
                )
            }
        }
        return Report(tables: [table], goals: goals)
    }
}

/// The contents of the three sets (the fragments of a file), and the offsets to query.
private struct Fragments: Sendable {
    var ascending: [Range<Int64>]
    var shuffled: [Range<Int64>]
    /// The offsets to query, spread over the file.
    var offsets: [Int64]
    /// The offsets to query in a set whose queries are linear in its size.
    var fewOffsets: ArraySlice<Int64> { offsets.prefix(200_000 / ascending.count + 20) }

    init(count: Int) {
        var random = SeededGenerator(seed: 1)
        ascending = (0..<count).map { Int64($0) * 16_384..<Int64($0) * 16_384 + 12_288 }
        shuffled = ascending.shuffled(using: &random)
        let end = Int64(count) * 16_384 - 1_048_576
        offsets = (0..<100_000).map { _ in Int64.random(in: 0..<end, using: &random) }
    }
}

/// One row of the table: the same operation on the three sets.
private struct RangesOperation: Sendable {
    typealias Figure = @Sendable (Fragments) -> Double

    var name: String
    /// The project's goal for 100,000 fragments, in nanoseconds.
    var goal: Double?
    var byteRangeSet: Figure
    var rangeSet: Figure?
    var indexSet: Figure?

    static let all = [
        contains, firstMissingRange, holes, insertAscending, insertAdjacent, insertShuffled, insertShared, remove,
    ]

    static let contains = RangesOperation(
        name: "contains 4 KiB",
        goal: 300,
        byteRangeSet: { fragments in
            nanoseconds(operations: fragments.offsets.count, prepare: { ByteRangeSet(fragments.ascending) }) { set in
                for offset in fragments.offsets { blackHole(set.contains(offset..<offset + 4_096)) }
            }
        },
        rangeSet: { fragments in
            nanoseconds(operations: fragments.fewOffsets.count, prepare: { RangeSet(fragments.ascending) }) { set in
                for offset in fragments.fewOffsets {
                    blackHole(set.isSuperset(of: RangeSet(offset..<offset + 4_096)))
                }
            }
        },
        indexSet: { fragments in
            nanoseconds(operations: fragments.offsets.count, prepare: { IndexSet(fragments.ascending) }) { set in
                for offset in fragments.offsets {
                    blackHole(set.contains(integersIn: Int(offset)..<Int(offset) + 4_096))
                }
            }
        }
    )

    static let firstMissingRange = RangesOperation(
        name: "first missing range in 1 MiB",
        goal: 300,
        byteRangeSet: { fragments in
            nanoseconds(operations: fragments.offsets.count, prepare: { ByteRangeSet(fragments.ascending) }) { set in
                for offset in fragments.offsets { blackHole(set.firstMissingRange(in: offset..<offset + 1_048_576)) }
            }
        },
        rangeSet: nil,
        indexSet: nil
    )

    static let holes = RangesOperation(
        name: "missing ranges in 1 MiB (64)",
        goal: nil,
        byteRangeSet: { fragments in
            nanoseconds(operations: 10_000, prepare: { ByteRangeSet(fragments.ascending) }) { set in
                for offset in fragments.offsets.prefix(10_000) {
                    blackHole(set.missingRanges(in: offset..<offset + 1_048_576))
                }
            }
        },
        rangeSet: { fragments in
            let offsets = fragments.fewOffsets.prefix(20)
            return nanoseconds(operations: offsets.count, prepare: { RangeSet(fragments.ascending) }) { set in
                for offset in offsets { blackHole(RangeSet(offset..<offset + 1_048_576).subtracting(set)) }
            }
        },
        indexSet: { fragments in
            let offsets = fragments.fewOffsets.prefix(20)
            return nanoseconds(operations: offsets.count, prepare: { IndexSet(fragments.ascending) }) { set in
                for offset in offsets {
                    blackHole(IndexSet(integersIn: Int(offset)..<Int(offset) + 1_048_576).subtracting(set))
                }
            }
        }
    )

    static let insertAscending = RangesOperation(
        name: "insert, ascending",
        goal: 50,
        byteRangeSet: { fragments in
            nanoseconds(operations: fragments.ascending.count, prepare: { ByteRangeSet() }) { set in
                for range in fragments.ascending { set.insert(range) }
            }
        },
        rangeSet: { fragments in
            nanoseconds(operations: fragments.ascending.count, prepare: { RangeSet<Int64>() }) { set in
                for range in fragments.ascending { set.insert(contentsOf: range) }
            }
        },
        indexSet: { fragments in
            nanoseconds(operations: fragments.ascending.count, prepare: { IndexSet() }) { set in
                for range in fragments.ascending { set.insert(range) }
            }
        }
    )

    static let insertAdjacent = RangesOperation(
        name: "insert, extending the last",
        goal: 50,
        byteRangeSet: { fragments in
            nanoseconds(operations: fragments.offsets.count, prepare: { ByteRangeSet(fragments.ascending) }) { set in
                let end = set.bounds?.upperBound ?? 0
                for step in 0..<Int64(fragments.offsets.count) { set.insert(end + step..<end + step + 1) }
            }
        },
        rangeSet: { fragments in
            nanoseconds(operations: fragments.offsets.count, prepare: { RangeSet(fragments.ascending) }) { set in
                let end = set.ranges.last?.upperBound ?? 0
                for step in 0..<Int64(fragments.offsets.count) { set.insert(contentsOf: end + step..<end + step + 1) }
            }
        },
        indexSet: { fragments in
            nanoseconds(operations: fragments.offsets.count, prepare: { IndexSet(fragments.ascending) }) { set in
                let end = Int64(set.last ?? 0) + 1
                for step in 0..<Int64(fragments.offsets.count) { set.insert(end + step..<end + step + 1) }
            }
        }
    )

    static let insertShuffled = RangesOperation(
        name: "insert, random order",
        goal: 4_000,
        byteRangeSet: { fragments in
            nanoseconds(operations: fragments.shuffled.count, prepare: { ByteRangeSet() }) { set in
                for range in fragments.shuffled { set.insert(range) }
            }
        },
        rangeSet: { fragments in
            nanoseconds(operations: fragments.shuffled.count, prepare: { RangeSet<Int64>() }) { set in
                for range in fragments.shuffled { set.insert(contentsOf: range) }
            }
        },
        indexSet: { fragments in
            nanoseconds(operations: fragments.shuffled.count, prepare: { IndexSet() }) { set in
                for range in fragments.shuffled { set.insert(range) }
            }
        }
    )

    static let insertShared = RangesOperation(
        name: "insert after a copy",
        goal: nil,
        byteRangeSet: { fragments in
            nanoseconds(operations: 200, prepare: { ByteRangeSet(fragments.ascending) }) { set in
                for offset in fragments.offsets.prefix(200) {
                    let snapshot = set
                    set.insert(offset..<offset + 4_096)
                    blackHole(snapshot)
                }
            }
        },
        rangeSet: { fragments in
            nanoseconds(operations: 200, prepare: { RangeSet(fragments.ascending) }) { set in
                for offset in fragments.offsets.prefix(200) {
                    let snapshot = set
                    set.insert(contentsOf: offset..<offset + 4_096)
                    blackHole(snapshot)
                }
            }
        },
        indexSet: { fragments in
            nanoseconds(operations: 200, prepare: { IndexSet(fragments.ascending) }) { set in
                for offset in fragments.offsets.prefix(200) {
                    let snapshot = set
                    set.insert(offset..<offset + 4_096)
                    blackHole(snapshot)
                }
            }
        }
    )

    static let remove = RangesOperation(
        name: "remove, random order",
        goal: nil,
        byteRangeSet: { fragments in
            nanoseconds(operations: fragments.shuffled.count, prepare: { ByteRangeSet(fragments.ascending) }) { set in
                for range in fragments.shuffled { set.remove(range) }
            }
        },
        rangeSet: { fragments in
            nanoseconds(operations: fragments.shuffled.count, prepare: { RangeSet(fragments.ascending) }) { set in
                for range in fragments.shuffled { set.remove(contentsOf: range) }
            }
        },
        indexSet: { fragments in
            nanoseconds(operations: fragments.shuffled.count, prepare: { IndexSet(fragments.ascending) }) { set in
                for range in fragments.shuffled { set.remove(range) }
            }
        }
    )
}

extension RangeSet<Int64> {
    fileprivate init(_ fragments: [Range<Int64>]) {
        self.init()
        for range in fragments { insert(contentsOf: range) }
    }

    fileprivate init(_ range: Range<Int64>) {
        self.init()
        insert(contentsOf: range)
    }
}

extension IndexSet {
    fileprivate init(_ fragments: [Range<Int64>]) {
        self.init()
        for range in fragments { insert(range) }
    }

    fileprivate mutating func insert(_ range: Range<Int64>) {
        insert(integersIn: Int(range.lowerBound)..<Int(range.upperBound))
    }

    fileprivate mutating func remove(_ range: Range<Int64>) {
        remove(integersIn: Int(range.lowerBound)..<Int(range.upperBound))
    }
}
