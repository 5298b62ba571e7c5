#if Tools
import SpoolAVFoundation
import SpoolTesting

// Examples from docs/testing.md.

func checkUpstream() async throws {
    let abilities = UpstreamContract.Capability.all.subtracting([.encodedBodies])
    for rule in UpstreamContract.cases(for: abilities) {
        try await rule.run(
            over: .sockets { settings in
                var configuration = HTTPUpstream.Configuration()
                configuration.clock = settings.clock
                return URLSessionUpstream(configuration)  // replace it with your transport
            })
    }
}
#endif
