import Spool
import SpoolHTTP

/// The transports of this build, with their default configuration.
enum Transports {
    static var all: [any Upstream] {
        #if AsyncHTTPClient
        [AsyncHTTPClientUpstream(), URLSessionUpstream()]
        #else
        [URLSessionUpstream()]
        #endif
    }
}
