// This file contains only the import that an app needs. The main purpose of the test is to check that the file
// compiles.
import SpoolAVFoundation
import Testing

@Suite("A single import")
struct OneImportTests {
    @Test("SpoolAVFoundation provides policies, range sets and errors without another import")
    func names() {
        var configuration = MediaCache.Configuration()
        configuration.capacity = .bytes(1 << 20)
        configuration.eviction = .largestFirst
        configuration.freshness = .revalidate
        configuration.keyPolicy = .ignoringQuery.ignoringHost()

        let ranges: ByteRangeSet = [0..<5]
        #expect(ranges.byteCount == 5 && ranges.missingRanges(in: 0..<10) == [5..<10])
        #expect(CacheError.Code.capacityExceeded.number == 14)
        #expect(ResourceState(storedRanges: ranges, length: 10).fractionCompleted == 0.5)
    }
}
