import Testing

@testable import ByteRanges

/// Long random sequences of changes, determined by a seed and compared with a bitmap. The whole set is checked after
/// each step.
@Suite(.timeLimit(.minutes(10)))
struct ByteRangeSetRandomTests {
    @Test(
        "After each random insertion or removal, the set is valid and matches a bitmap",
        arguments: [UInt64(1), 2, 3],
        [2, 3, 5, 16]
    )
    func history(seed: UInt64, leafCapacity: Int) {
        var random = SeededGenerator(seed: seed)
        var model = OffsetModel(size: 250)
        var set = ByteRangeSet(leafCapacity: leafCapacity)
        for step in 0..<600 {
            // Most ranges are short, so that many stay separate. Every 50th range can cover whole leaves.
            let length = Int64.random(in: 0...(step % 50 == 49 ? 120 : 4), using: &random)
            let lower = Int64.random(in: 0...(250 - length), using: &random)
            let inserts = Bool.random(using: &random)
            if inserts {
                set.insert(lower..<(lower + length))
            } else {
                set.remove(lower..<(lower + length))
            }
            model.set(lower..<(lower + length), to: inserts)
            guard check(set, model, "step \(step)") else { return }

            let window = lower..<Swift.min(lower + 60, 250)
            let holes = model.runs(in: window, held: false)
            guard same(set.missingRanges(in: window), holes, "step \(step), holes in \(window)") else { return }
        }
    }

    @Test("Inserting and removing 20,000 fragments in random order fills and empties leaves of the default size")
    func manyFragments() {
        var random = SeededGenerator(seed: 4)
        let fragments = (0..<20_000).map { Int64($0) * 10..<Int64($0) * 10 + 7 }
        var set = ByteRangeSet()
        for fragment in fragments.shuffled(using: &random) {
            set.insert(fragment)
        }
        #expect(set.leaves.violation == nil)
        #expect(set.leaves.leaves.count > 20)
        #expect(set.elementsEqual(fragments))
        #expect(set.byteCount == 140_000)

        for fragment in fragments.shuffled(using: &random).dropLast(3) {
            set.remove(fragment)
        }
        #expect(set.leaves.violation == nil)
        #expect(set.count == 3)
        #expect(set.leaves.leaves.count == 1)

        set.insert(0..<200_000)
        #expect(Array(set) == [0..<200_000])
        #expect(set.leaves.violation == nil)
    }

    @Test(
        "Union, difference and intersection of random sets with many leaves give the same results as for bitmaps",
        arguments: 1...20)
    func algebra(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var models: [OffsetModel] = []
        var sets: [ByteRangeSet] = []
        // Combines a dense set with a dense or a sparse one, so that both union algorithms are tested.
        for pieces in [200, seed.isMultiple(of: 2) ? 200 : 5] {
            var model = OffsetModel(size: 1_000)
            var set = ByteRangeSet(leafCapacity: 4)
            for _ in 0..<pieces {
                let lower = Int64.random(in: 0..<990, using: &random)
                let range = lower..<(lower + Int64.random(in: 1...10, using: &random))
                model.set(range, to: true)
                set.insert(range)
            }
            models.append(model)
            sets.append(set)
        }
        for (left, right) in [(0, 1), (1, 0)] {
            var union = sets[left]
            union.formUnion(sets[right])
            var difference = sets[left]
            difference.subtract(sets[right])
            var expected = models[left]
            expected.held = zip(models[left].held, models[right].held).map { $0 || $1 }
            #expect(check(union, expected, "union"))
            expected.held = zip(models[left].held, models[right].held).map { $0 && !$1 }
            #expect(check(difference, expected, "difference"))
            expected.held = zip(models[left].held, models[right].held).map { $0 && $1 }
            #expect(check(sets[left].intersection(sets[right]), expected, "intersection"))
        }
    }
}
