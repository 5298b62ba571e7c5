// This file imports what an app does, and nothing else: that it compiles is most of its proof.
import SpoolAVFoundation
import Testing

@Suite("One import")
struct OneImportTests {
    @Test("Policies, sets of ranges and errors need no further import")
    func names() {
        var configuration = MediaCache.Configuration()
        configuration.capacity = .bytes(1 << 20)
        configuration.eviction = .largestFirst
        configuration.freshness = .revalidate
        configuration.keyPolicy = .ignoringQuery.ignoringHost()

        let ranges: ByteRangeSet = [0..<5]
        #expect(ranges.byteCount == 5 && ranges.holes(in: 0..<10) == [5..<10])
        #expect(CacheError.Code.capacityExceeded.number == 14)
        #expect(ResourceState(storedRanges: ranges, length: 10).fractionCompleted == 0.5)
    }
}
