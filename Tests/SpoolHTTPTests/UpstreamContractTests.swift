import Spool
import SpoolHTTP
import SpoolTesting
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Contract tests of both transports, over real sockets.
///
/// `URLSessionUpstream` on Linux lacks two capabilities in the contract, because FoundationNetworking lacks them:
/// - `backPressure`: memory use grows with a body that is not read.
/// - `encodedBodies`: libcurl decodes bodies even though decoding was not requested.
@Suite(.timeLimit(.minutes(10)))
struct UpstreamContractTests {
    #if AsyncHTTPClient
    @Test("AsyncHTTPClientUpstream:", arguments: UpstreamContract.cases(for: UpstreamContract.Capability.all))
    func asyncHTTPClient(_ contractCase: UpstreamContract.Case) async throws {
        try await contractCase.run(over: .sockets { AsyncHTTPClientUpstream(configuration($0)) })
    }
    #endif

    #if canImport(Darwin)
    static let urlSessionAbilities = UpstreamContract.Capability.all
    #else
    static let urlSessionAbilities = UpstreamContract.Capability.all.subtracting([.backPressure, .encodedBodies])
    #endif

    @Test("URLSessionUpstream:", arguments: UpstreamContract.cases(for: urlSessionAbilities))
    func urlSession(_ contractCase: UpstreamContract.Case) async throws {
        try await contractCase.run(over: .sockets { URLSessionUpstream(configuration($0)) })
    }
}

private func configuration(_ settings: UpstreamContract.Settings) -> HTTPUpstream.Configuration {
    var configuration = HTTPUpstream.Configuration()
    configuration.clock = settings.clock
    return configuration
}
