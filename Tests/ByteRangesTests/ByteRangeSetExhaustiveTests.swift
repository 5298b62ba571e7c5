import Testing

@testable import ByteRanges

/// Tests that combine every set of offsets from 0 to 6 with every range. The leaves are so small that ranges span
/// several of them.
@Suite(.timeLimit(.minutes(10)))
struct ByteRangeSetExhaustiveTests {
    static let size = 7
    static let models = (0..<(1 << size)).map { OffsetModel(size: size, mask: $0) }
    /// The ranges whose bounds are between one below and one above the offsets, to test clipping and the end of the
    /// set.
    static let ranges = allRanges(in: -1...Int64(size + 1))

    static func makeSet(_ model: OffsetModel, leafCapacity: Int) -> ByteRangeSet {
        var set = ByteRangeSet(leafCapacity: leafCapacity)
        for range in model.ranges {
            set.insert(range)
        }
        return set
    }

    @Test("Inserting any range into any small set gives the same result as for a bitmap", arguments: [2, 3, 512])
    func insert(leafCapacity: Int) {
        for model in Self.models {
            let set = Self.makeSet(model, leafCapacity: leafCapacity)
            for range in Self.ranges where range.upperBound <= Int64(Self.size) {
                var expected = model
                expected.set(range, to: true)
                var changed = set
                changed.insert(range)
                guard check(changed, expected) else { return }
            }
            guard check(set, model) else { return }
        }
    }

    @Test("Removing any range from any small set gives the same result as for a bitmap", arguments: [2, 3, 512])
    func remove(leafCapacity: Int) {
        for model in Self.models {
            let set = Self.makeSet(model, leafCapacity: leafCapacity)
            for range in Self.ranges {
                var expected = model
                expected.set(range, to: false)
                var changed = set
                changed.remove(range)
                guard check(changed, expected) else { return }
            }
            guard check(set, model) else { return }
        }
    }

    @Test("Every query on every small set gives the same result as on a bitmap", arguments: [2, 512])
    func queries(leafCapacity: Int) {
        for model in Self.models {
            let set = Self.makeSet(model, leafCapacity: leafCapacity)
            for offset in Int64(-2)...Int64(Self.size + 1) {
                guard
                    same(set.contains(offset), model.contains(offset), "\(set) contains \(offset)"),
                    same(set.prefix(at: offset), model.prefix(at: offset), "\(set) prefix at \(offset)")
                else { return }
            }
            for range in Self.ranges {
                let holes = model.runs(in: range, held: false)
                guard
                    same(set.contains(range), model.contains(range), "\(set) contains \(range)"),
                    same(set.missingRanges(in: range), holes, "\(set) holes in \(range)"),
                    same(set.firstMissingRange(in: range), holes.first, "\(set) first hole in \(range)"),
                    same(
                        Array(set.intersection(range)),
                        model.runs(in: range, held: true),
                        "\(set) intersection with \(range)"
                    )
                else { return }
            }
        }
    }

    @Test("Union, difference and intersection of any two small sets give the same results as for bitmaps")
    func algebra() {
        let sets = Self.models.map { Self.makeSet($0, leafCapacity: 2) }
        for (left, leftModel) in zip(sets, Self.models) {
            for (right, rightModel) in zip(sets, Self.models) {
                var union = left
                union.formUnion(right)
                var difference = left
                difference.subtract(right)
                let common = left.intersection(right)

                var unionModel = leftModel
                var differenceModel = leftModel
                var commonModel = leftModel
                for offset in 0..<Self.size {
                    unionModel.held[offset] = leftModel.held[offset] || rightModel.held[offset]
                    differenceModel.held[offset] = leftModel.held[offset] && !rightModel.held[offset]
                    commonModel.held[offset] = leftModel.held[offset] && rightModel.held[offset]
                }
                guard check(union, unionModel), check(difference, differenceModel), check(common, commonModel) else {
                    return
                }
            }
        }
    }

    @Test("Two sets are equal if and only if they contain the same offsets, regardless of their leaf sizes")
    func equality() {
        let small = Self.models.map { Self.makeSet($0, leafCapacity: 2) }
        let large = Self.models.map { Self.makeSet($0, leafCapacity: 512) }
        for left in small.indices {
            for right in large.indices where (small[left] == large[right]) != (left == right) {
                Issue.record("\(small[left]) == \(large[right]) is \(left != right)")
                return
            }
        }
        #expect(small.map(\.hashValue) == large.map(\.hashValue))
        #expect(Set(small).union(large).count == Self.models.count)
    }
}

/// Checks that the set is valid and equals the model, and records an issue otherwise. The function doesn't use
/// `#expect`, which would take minutes for millions of cases.
func check(_ set: ByteRangeSet, _ model: OffsetModel, _ context: @autoclosure () -> String = "") -> Bool {
    same(set.leaves.violation, nil, "\(set) \(context())")
        && same(Array(set), model.ranges, context())
        && same(set.count, model.ranges.count, context())
        && same(set.byteCount, model.byteCount, context())
}

func same<Value: Equatable>(_ actual: Value, _ expected: Value, _ context: @autoclosure () -> String) -> Bool {
    if actual == expected { return true }
    Issue.record("\(context()): is \(actual), should be \(expected)")
    return false
}
