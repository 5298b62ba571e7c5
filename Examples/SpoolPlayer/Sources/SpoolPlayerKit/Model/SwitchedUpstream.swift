import SpoolAVFoundation
import Synchronization

/// Another upstream with a switch. While that is on, all is as if there were no network.
///
/// The codes `.unreachable` and `.connectionLost` are what counts as a lost network: a player that needs bytes waits
/// for as long as it takes, and does not fail.
final class SwitchedUpstream: Upstream {
    private let base: any Upstream
    private let offline = Atomic(false)

    init(_ base: any Upstream) { self.base = base }

    /// Whether nothing is let through.
    var isOffline: Bool {
        get { offline.load(ordering: .relaxed) }
        set { offline.store(newValue, ordering: .relaxed) }
    }

    func open(_ request: UpstreamRequest) async throws -> UpstreamResponse {
        // An error's sentence may get into logs: it has the address without its query.
        let address = MediaSource(url: request.url).displayAddress
        guard !isOffline else { throw UpstreamError(.unreachable, "\(address): the app's offline switch is on") }
        var response = try await base.open(request)
        // Cuts off what is on its way, too. It costs a copy of the bytes.
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
