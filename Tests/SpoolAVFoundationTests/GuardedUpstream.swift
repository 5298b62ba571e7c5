import Foundation
import HTTPTypes
import Spool
import SpoolTesting
import Synchronization

/// An origin that accepts one token at a time.
final class GuardedUpstream: Upstream {
    let upstream: MemoryUpstream
    private let state = Mutex((valid: "0", refused: 0))

    init(_ resources: [String: MemoryUpstream.File]) { upstream = MemoryUpstream(resources) }

    /// The number of requests that were rejected because of their token.
    var refusals: Int { state.withLock { $0.refused } }

    /// Accepts only this token from now on.
    func accept(_ token: Int) { state.withLock { $0.valid = "\(token)" } }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        let isRefused = state.withLock { state in
            let isRefused = request.headerFields[.authorization] != "Bearer " + state.valid
            if isRefused { state.refused += 1 }
            return isRefused
        }
        guard isRefused else { return try await upstream.open(request) }
        let none = AsyncStream<Data> { $0.finish() }
        return UpstreamResponse(
            head: HTTPResponse(status: .unauthorized), url: request.url, body: UpstreamBody(none))
    }
}
