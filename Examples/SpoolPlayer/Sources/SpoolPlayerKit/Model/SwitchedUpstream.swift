import SpoolAVFoundation
import Synchronization

/// A transport with an offline switch. While the switch is on, requests fail as if there were no network.
///
/// The codes `.unreachable` and `.connectionLost` indicate a lost network. After such an error, a player that needs
/// bytes waits without a time limit, and does not fail.
final class SwitchedUpstream: Upstream {
    private let base: any Upstream
    private let offline = Atomic(false)

    init(_ base: any Upstream) { self.base = base }

    /// Whether the switch is on, so that requests and responses fail.
    var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set { offline.store(newValue, ordering: .relaxed) }
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        // Error messages may be logged, so the message contains the URL without its query.
        let address = MediaSource(url: request.url).redactedURL
        guard !isOffline else { throw UpstreamError(.unreachable, "\(address): the app's offline switch is on") }
        var response = try await base.open(request)
        // The switch also interrupts responses in progress. For this purpose, the body is replaced, which requires
        // copying the bytes.
        response.body = UpstreamBody(
            response.body.map { [self] chunk in
                guard !isOffline else {
                    throw UpstreamError(.connectionLost, "\(address): the app's offline switch was turned on")
                }
                return chunk.withUnsafeBytes { Data($0) }
            })
        return response
    }
}
