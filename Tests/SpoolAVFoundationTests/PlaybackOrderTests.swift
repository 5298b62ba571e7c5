import SpoolTesting
import Testing

@testable import SpoolAVFoundation

@Suite("Playback order")
struct PlaybackOrderTests {
    private func order(_ count: Int) -> PlaybackOrder {
        var order = PlaybackOrder()
        var random = SplitMix(1)
        order.insert(Array(1...count), at: 0, using: &random)
        return order
    }

    /// Returns the entries that play automatically, starting with the current one, and at most `limit` entries.
    private func course(_ order: PlaybackOrder, _ limit: Int = 10) -> [Int] {
        var order = order
        var course: [Int] = []
        while let current = order.current, course.count < limit {
            course.append(current)
            guard let following = order.following else { break }
            order.jump(to: following)
        }
        return course
    }

    @Test("Depending on the repeat mode, a queue plays its entries once, repeats all entries, or repeats one entry")
    func repeatMode() {
        var order = order(3)
        #expect(course(order) == [1, 2, 3])
        order.repeatMode = .all
        #expect(course(order, 5) == [1, 2, 3, 1, 2])
        #expect(order.neighbor(-1) == 3 && order.neighbor(4) == 2)
        order.repeatMode = .one
        #expect(course(order, 3) == [1, 1, 1])
        // If the user skips an entry, the queue advances despite `.one`, but does not move past its end.
        #expect(order.neighbor(1) == 2 && order.neighbor(3) == nil && order.neighbor(-1) == nil)
    }

    @Test("No entry is upcoming twice, and the upcoming entries continue at the start only if all entries repeat")
    func upcoming() {
        var order = order(4)
        order.jump(to: 3)
        #expect(order.upcoming(3) == [4])
        order.repeatMode = .all
        #expect(order.upcoming(3) == [4, 1, 2] && order.upcoming(99) == [4, 1, 2] && order.upcoming(0) == [])
        #expect(PlaybackOrder().upcoming(3) == [] && PlaybackOrder().following == nil)
    }

    @Test(
        "If the current entry is removed, the next remaining entry becomes current, or the last entry if none follows")
    func removal() {
        var order = order(5)
        order.jump(to: 3)
        order.remove([3, 4])
        #expect(order.current == 5)
        order.remove([5, 77])
        #expect(order.current == 2 && order.listed == [1, 2])
        order.repeatMode = .all
        order.remove([2])
        #expect(order.current == 1, "the list starts again")
        order.remove([1])
        #expect(order.current == nil && order.following == nil)
    }

    @Test("Moved and added entries play in the order of the list, and the current entry does not change")
    func moves() {
        var order = order(4)
        order.jump(to: 2)
        order.move(4, to: 0)
        order.move(99, to: 0)
        #expect(order.listed == [4, 1, 2, 3] && course(order) == [2, 3])
        var random = SplitMix(1)
        order.insert([5, 6], at: 3, using: &random)
        order.insert([7], at: 99, using: &random)
        order.insert([8], at: -1, using: &random)
        #expect(order.listed == [8, 4, 1, 2, 5, 6, 3, 7] && course(order) == [2, 5, 6, 3, 7])
    }

    @Test(
        "In a shuffled queue, the current entry is first and each entry plays once; unshuffling restores the order",
        arguments: 0..<20)
    func shuffle(seed: UInt64) {
        var order = order(20)
        var random = SplitMix(seed)
        order.jump(to: 7)
        order.shuffle(true, using: &random)
        let shuffled = course(order, 30)
        #expect(shuffled.first == 7 && shuffled.sorted() == Array(1...20) && order.listed == Array(1...20))
        order.insert([21, 22], at: 0, using: &random)
        #expect(course(order, 30).sorted() == Array(1...22) && order.current == 7)
        order.shuffle(false, using: &random)
        #expect(course(order, 30) == Array(7...20) && order.listed == [21, 22] + Array(1...20))
    }

    @Test(
        "After random edits, exactly the listed entries play, and a nonempty queue has a current entry",
        arguments: 0..<50)
    func random(seed: UInt64) {
        var random = SplitMix(seed)
        var order = PlaybackOrder()
        var last = 0
        for _ in 0..<200 {
            let any = order.listed.randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<7, using: &random) {
            case 0, 1:
                let new = (0..<Int.random(in: 0...3, using: &random)).map { last + $0 + 1 }
                last += new.count
                order.insert(new, at: Int.random(in: -2...30, using: &random), using: &random)
            case 2: order.remove([any, Int.random(in: 0...last, using: &random)])
            case 3: order.move(any, to: Int.random(in: -2...30, using: &random))
            case 4: order.shuffle(Bool.random(using: &random), using: &random)
            case 5: order.repeatMode = [.off, .one, .all].randomElement(using: &random) ?? .off
            default: order.jump(to: any)
            }
            #expect(order.played.sorted() == order.listed.sorted() && (order.current == nil) == order.listed.isEmpty)
            #expect(order.current.map(order.listed.contains) ?? true)
            #expect(order.isShuffled || order.played == order.listed)
            #expect(Set(order.upcoming(5)).count == order.upcoming(5).count)
        }
    }
}
