public import Spool

/// The upstream that suits the platform: the one that most callers want.
///
/// On Apple platforms it is `URLSessionUpstream`, which knows the system's proxies, cellular policy and trust; elsewhere
/// it is `AsyncHTTPClientUpstream`, since URLSession there has no back-pressure, or `URLSessionUpstream` where the
/// package is built without its trait `AsyncHTTPClient`. Either can be made by hand.
public enum HTTPUpstream {
    /// Makes the platform's upstream. Keep it: its connections are reused as long as it lives.
    public static func standard(_ configuration: HTTPUpstream.Configuration = .init()) -> any Upstream {
        #if AsyncHTTPClient && os(Linux)
        AsyncHTTPClientUpstream(configuration)
        #else
        URLSessionUpstream(configuration)
        #endif
    }
}
