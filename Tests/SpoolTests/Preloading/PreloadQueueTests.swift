import SpoolTesting
import Testing

@testable import Spool

@Suite("Preload queue")
struct PreloadQueueTests {
    @Test("The order of the queue matches a naive model: by priority, then returned items, then first in, first out")
    func model() {
        for seed in 0..<50 {
            var random = SplitMix(UInt64(seed))
            var queue = PreloadQueue<Int>(lineCount: 3)
            var model: [[Int]] = [[], [], []]
            for number in 0..<600 {
                let line = random.below(3)
                switch random.below(5) {
                case 0, 1:
                    queue.append(number, in: line)
                    model[line].append(number)
                case 2, 3:
                    let filled = (0..<3).last { !model[$0].isEmpty }
                    #expect(queue.popFirst() == filled.map { model[$0].removeFirst() })
                default:
                    queue.putBack(number, in: line)
                    model[line].insert(number, at: 0)
                }
            }
            #expect(queue.removeAll() == model.reversed().flatMap { $0 })
            #expect(queue.popFirst() == nil)
        }
    }
}
