import ByteRanges
import Testing

@Suite struct BlockTests {
    @Test("The arithmetic of blocks is exact up to the largest offset")
    func limits() {
        let last = Block.index(of: Block.offsetLimit - 1)
        #expect(Block.range(of: last).upperBound == Block.offsetLimit)
        #expect(Block.start(of: last) == Block.offsetLimit - Block.size)
        #expect(Block.roundUp(Block.offsetLimit - 1) == Block.offsetLimit)
        #expect(Block.indices(touching: 0..<Block.offsetLimit) == 0..<last + 1)
    }

    #if DEBUG
    @Test("In a debug build, an offset or index out of range causes a crash")
    func outOfRange() async {
        await #expect(processExitsWith: .failure) { _ = Block.index(of: Block.offsetLimit + 1) }
        await #expect(processExitsWith: .failure) { _ = Block.index(of: -1) }
        await #expect(processExitsWith: .failure) { _ = Block.start(of: .max / Block.size) }
        await #expect(processExitsWith: .failure) { _ = Block.roundUp(.max - Block.size) }
    }
    #endif
}
