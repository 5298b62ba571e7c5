#if canImport(Darwin)
import Foundation
import Spool

extension URLRequest {
    /// Restricts the networks that the request may use, and sets the class of service that fits the purpose.
    ///
    /// The session's own restrictions still apply, as does a class of service that the app has set for the session.
    mutating func restrict(
        to access: HTTPUpstream.Configuration.NetworkAccess, purpose: UpstreamRequest.Purpose, in session: URLSession
    ) {
        allowsCellularAccess = access.contains(.cellular)
        allowsExpensiveNetworkAccess = access.contains(.expensive)
        allowsConstrainedNetworkAccess = access.contains(.constrained)
        guard session.configuration.networkServiceType == .default else { return }
        networkServiceType = purpose == .playback ? .avStreaming : .background
    }
}

extension URLError {
    /// Whether the request is not allowed on the current network, according to its restrictions or the user's settings.
    var isRejectedByNetworkAccess: Bool { networkUnavailableReason != nil }
}
#endif
