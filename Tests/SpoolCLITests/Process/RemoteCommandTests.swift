import Spool
import SpoolHTTP
import SpoolProxy
import Testing

@testable import SpoolCLI

@Suite struct RemoteCommandTests {
    @Test func `A command that a server can't run for other processes causes an error that is not a usage error`() async
    {
        let cache = MediaCache.inMemory(upstream: HTTPUpstream.standard())
        let outcome = await RemoteCommand.runner(on: cache)(["demo", "--json"])
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("error: a server is using the cache directory, and can't run “demo”"))
        await cache.close()
    }
}
