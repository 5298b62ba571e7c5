import Testing

@testable import SpoolProxy

@Suite struct UsableCoresTests {
    @Test func `Only the cores that the process may use are counted`() {
        #expect(UsableCores.allowed(in: "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n") == 2)
        #expect(UsableCores.allowed(in: "Cpus_allowed:\tffffffff,00000001\n") == 33)
        #expect(UsableCores.allowed(in: "Name:\tx\n") == nil)
        #expect(UsableCores.count >= 1)
    }
}
