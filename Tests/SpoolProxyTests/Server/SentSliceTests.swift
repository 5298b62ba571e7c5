#if Proxy
import Testing

@testable import SpoolProxy

@Suite struct SentSliceTests {
    @Test("E98: a slice is sent from its file only if its end fits into the 56 bits of a file region")
    func reach() {
        let limit: Int64 = 1 << 56
        let within: [Range<Int64>] = [0..<1, 0..<limit - 1, limit - 2..<limit - 1]
        for range in within { #expect(SentSlice.canHold(range)) }
        let beyond: [Range<Int64>] = [limit - 1..<limit, limit..<limit + 1, limit * 2..<limit * 2 + 5, -1..<5]
        for range in beyond {
            #expect(!SentSlice.canHold(range))
        }
    }
}
#endif
