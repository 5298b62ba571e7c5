import SpoolProxy
import Testing

@Suite struct RequestLimitsTests {
    @Test func `A head has 32 KiB and 30 seconds`() {
        #expect(RequestLimits().headBytes == 32_768)
        #expect(RequestLimits().headTime == .seconds(30))
    }
}
