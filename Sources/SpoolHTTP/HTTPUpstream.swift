public import Spool

/// The upstream that suits the platform: the one that most callers want.
///
/// On Apple platforms it is `URLSessionUpstream`, which knows the system's proxies, cellular policy and trust; elsewhere
/// it is `AsyncHTTPClientUpstream`, since URLSession there has no back-pressure. Either can be made by hand.
public enum HTTPUpstream {
    /// Makes the platform's upstream. Keep it: its connections are reused as long as it lives.
    public static func standard(_ configuration: HTTPUpstreamConfiguration = .init()) -> any Upstream {
        #if canImport(Darwin) || !canImport(AsyncHTTPClient)
        URLSessionUpstream(configuration)
        #else
        AsyncHTTPClientUpstream(configuration)
        #endif
    }
}
