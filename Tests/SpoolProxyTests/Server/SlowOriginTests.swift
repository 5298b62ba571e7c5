import Spool
import SpoolOrigin
import SpoolTesting
import Testing

@testable import SpoolProxy

/// Responses that an origin starts only after many seconds.
@Suite(.timeLimit(.minutes(5))) struct SlowOriginTests {
    private static let resource = OriginResource.pattern(5000, .stall(after: nil))
    private static let avPlayer = "User-Agent: AppleCoreMedia/1.0.0.21A326 (iPhone; U; CPU OS 17_0 like Mac OS X)\r\n"

    @Test("E240: a client receives a response that starts after 50 seconds, and the origin receives one request")
    func patientClient() async throws {
        let clock = ManualClock()
        try await OriginServer.run(["/a": Self.resource]) { origin in
            try await ProxyServer.run(clock: clock) { server, _ in
                async let response = server.get("/http/127.0.0.1:\(origin.port)/a", "User-Agent: Lavf/60.3.100\r\n")
                try await origin.log.wait { $0.count == 1 && $0[0].isStalled }
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(50))
                origin.release()
                #expect(try await response.status == 200)
                #expect(origin.log.exchanges.count == 1)
            }
        }
    }

    @Test("E240: AVPlayer receives 504 after two seconds, and the late response when it retries")
    func avPlayer() async throws {
        let clock = ManualClock()
        try await OriginServer.run(["/a": Self.resource]) { origin in
            try await ProxyServer.run(clock: clock) { server, _ in
                let target = "/http/127.0.0.1:\(origin.port)/a"
                async let late = server.get(target, Self.avPlayer)
                try await origin.log.wait { $0.count == 1 && $0[0].isStalled }
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(2))
                let first = try await late
                #expect(first.status == 504)
                #expect(first.field("retry-after") == "1")
                async let repeated = server.get(target, Self.avPlayer)
                // Waits for the timers of the late response and of the repeated request.
                try await clock.waitForSleepers(2)
                origin.release()
                let second = try await repeated
                #expect(second.status == 200)
                #expect(second.body.count == 5000)
                #expect(origin.log.exchanges.count == 1)
            }
        }
    }

    @Test(arguments: [0, -1])
    func `A server with a response timeout that is not positive is rejected`(seconds: Int) {
        var configuration = ProxyConfiguration()
        configuration.limits.responseTimeout = .seconds(seconds)
        #expect(throws: ProxyError.self) { try configuration.validate() }
    }
}
