import Foundation

extension UpstreamError {
    /// What a source's resolver failed with, if it failed for want of a network: the same may succeed a little later.
    ///
    /// - Parameter address: The source's, as it may be shown.
    init?(resolving error: any Error, of address: String) {
        if let error = error as? UpstreamError, error.isTransient {
            self = error
            return
        }
        let (code, cause): (Code, String)
        switch (error as? URLError)?.code {
        case .notConnectedToInternet, .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .internationalRoamingOff,
            .dataNotAllowed, .callIsActive:
            (code, cause) = (.unreachable, "the network can't be reached")
        case .timedOut: (code, cause) = (.timedOut, "the network took too long")
        case .networkConnectionLost: (code, cause) = (.connectionLost, "the network connection was lost")
        default: return nil
        }
        self.init(code, "\(address) could not be resolved: \(cause)", underlying: error)
    }
}
