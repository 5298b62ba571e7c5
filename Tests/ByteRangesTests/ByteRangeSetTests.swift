import Testing

@testable import ByteRanges

@Suite
struct ByteRangeSetTests {
    // MARK: Example

    @Test("A set of two ranges reports its stored ranges, prefixes and missing ranges")
    func twoPieces() {
        var storedRanges: ByteRangeSet = [0..<65_536, 131_072..<196_608]
        #expect(storedRanges.contains(1_000..<2_000))
        #expect(storedRanges.prefix(at: 60_000) == 60_000..<65_536)
        #expect(storedRanges.prefix(at: 65_536) == nil)
        #expect(storedRanges.firstMissingRange(in: 0..<196_608) == 65_536..<131_072)
        #expect(storedRanges.missingRanges(in: 60_000..<200_000) == [65_536..<131_072, 196_608..<200_000])
        #expect(storedRanges.bounds == 0..<196_608)
        storedRanges.insert(65_536..<131_072)
        #expect(Array(storedRanges) == [0..<196_608])
        #expect(storedRanges.byteCount == 196_608)
    }

    @Test("An empty set has neither bounds nor bytes, and reports each range as missing")
    func empty() {
        let set = ByteRangeSet()
        #expect(set.isEmpty)
        #expect(set.bounds == nil)
        #expect(set.byteCount == 0)
        #expect(!set.contains(0))
        #expect(set.contains(5..<5))
        #expect(!set.contains(5..<6))
        #expect(set.firstMissingRange(in: 0..<10) == 0..<10)
        #expect(set.firstMissingRange(in: 3..<3) == nil)
        #expect(set.missingRanges(in: 0..<10) == [0..<10])
        #expect(set.missingRanges(in: 3..<3).isEmpty)
        #expect(set == [])
        #expect(set == ByteRangeSet(7..<7))
    }

    // MARK: Edges

    @Test("Operations at Int64.max do not overflow")
    func upperEdge() {
        let max = Int64.max
        var set = ByteRangeSet(0..<max)
        #expect(set.byteCount == max)
        #expect(set.contains(max - 1))
        #expect(!set.contains(max))
        #expect(set.prefix(at: max - 1) == max - 1..<max)
        #expect(set.firstMissingRange(in: 0..<max) == nil)
        set.insert(max - 1..<max)
        set.insert(0..<max)
        #expect(set.byteCount == max)
        set.remove(max - 1..<max)
        #expect(Array(set) == [0..<max - 1])
        #expect(set.missingRanges(in: 0..<max) == [max - 1..<max])
        set.remove(0..<1)
        set.insert(max - 1..<max)
        #expect(Array(set) == [1..<max])
        #expect(set.leaves.violation == nil)
        set.subtract(ByteRangeSet(0..<max))
        #expect(set.isEmpty)
        #expect(set.byteCount == 0)
    }

    @Test("A set never contains offsets below 0, and offsets down to Int64.min do not cause a crash")
    func belowZero() {
        let whole = Int64.min..<Int64.max
        var set: ByteRangeSet = [-10..<5, 8..<9, Int64.min..<(-3)]
        #expect(Array(set) == [0..<5, 8..<9])
        #expect(!set.contains(-1))
        #expect(!set.contains(Int64.min))
        #expect(!set.contains(-1..<3))
        #expect(set.prefix(at: -1) == nil)
        #expect(set.firstMissingRange(in: -2..<3) == -2..<0)
        #expect(set.missingRanges(in: whole) == [Int64.min..<0, 5..<8, 9..<Int64.max])
        #expect(set.intersection(whole) == set)
        set.remove(-100..<(-50))
        set.remove(-100..<1)
        #expect(Array(set) == [1..<5, 8..<9])
        set.insert(whole)
        #expect(set.byteCount == Int64.max)
        set.remove(whole)
        #expect(set.isEmpty)
    }

    @Test("Adjacent ranges merge; ranges one byte apart stay separate")
    func adjacency() {
        #expect(Array(ByteRangeSet([0..<4, 4..<8])) == [0..<8])
        #expect(Array(ByteRangeSet([4..<8, 0..<4])) == [0..<8])
        #expect(Array(ByteRangeSet([0..<4, 5..<8])) == [0..<4, 5..<8])
        var set: ByteRangeSet = [0..<4, 5..<8]
        set.insert(4..<5)
        #expect(Array(set) == [0..<8])
    }

    // MARK: Value and collection semantics

    @Test("A copy of a set does not change when the original changes", arguments: [2, 512])
    func valueSemantics(leafCapacity: Int) {
        var set = ByteRangeSet(leafCapacity: leafCapacity)
        for start in stride(from: Int64(0), to: 100, by: 10) {
            set.insert(start..<start + 5)
        }
        let copy = set
        let before = Array(set)
        var walk = set.makeIterator()
        set.insert(5..<10)
        set.remove(40..<60)
        set.insert(200..<300)
        set.insert(300..<310)
        #expect(Array(copy) == before)
        #expect(Array(IteratorSequence(walk)) == before)
        #expect(walk.next() == 0..<5)
        #expect(set != copy)
    }

    @Test("As a collection, the set provides its ranges by position, forward and backward", arguments: [2, 3, 512])
    func collection(leafCapacity: Int) {
        var set = ByteRangeSet(leafCapacity: leafCapacity)
        let ranges = (0..<20).map { Int64($0) * 10..<Int64($0) * 10 + 5 }
        for range in ranges {
            set.insert(range)
        }
        #expect(set.count == 20)
        #expect(set.indices.map { set[$0] } == ranges)
        #expect(set.first == ranges.first)
        #expect(set.last == ranges.last)
        #expect(Array(set.reversed()) == ranges.reversed())
        #expect(Array(set[3..<7]) == Array(ranges[3..<7]))
        #expect(set.distance(from: 2, to: 9) == 7)
    }

    @Test("The description of a set shows up to 32 ranges and the number of remaining ranges")
    func descriptions() {
        #expect(ByteRangeSet().description == "[]")
        #expect("\(ByteRangeSet([8..<10, 0..<5]))" == "[0..<5, 8..<10]")
        let many = ByteRangeSet((0..<40).map { Int64($0) * 2..<Int64($0) * 2 + 1 })
        #expect(many.description.hasSuffix("62..<63, and 8 more]"))
    }
}
