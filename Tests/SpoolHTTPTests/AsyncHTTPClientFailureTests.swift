#if AsyncHTTPClient
import NIOHTTP2
import Spool
import Testing

@testable import SpoolHTTP

@Suite struct AsyncHTTPClientFailureTests {
    @Test("E494: a request is retried if the origin closes its HTTP/2 stream or connection before the response")
    func closedStream() {
        let errors: [any Error] = [
            NIOHTTP2Errors.streamClosed(streamID: 7, errorCode: .cancel),
            NIOHTTP2Errors.streamClosed(streamID: 7, errorCode: .refusedStream),
            NIOHTTP2Errors.noSuchStream(streamID: 7),
        ]
        for error in errors {
            let failure = AsyncHTTPClientFailure(error, isInBody: false).upstreamError("https://a.example/a")
            #expect(failure.code == .connectionLost && failure.isTransient, "\(error)")
        }
    }
}
#endif
