#if !canImport(Darwin) && !StaticLinking
import Foundation
import FoundationNetworking
import Spool

extension URLRequest {
    /// Does nothing, because only Apple platforms distinguish networks.
    func restrict(
        to access: HTTPUpstream.Configuration.NetworkAccess, purpose: UpstreamRequest.Purpose, in session: URLSession
    ) {}
}

extension URLError {
    /// Whether the request is not allowed on the current network. Always false, because only Apple platforms report
    /// this.
    var isRejectedByNetworkAccess: Bool { false }
}
#endif
