public import Spool

#if canImport(FoundationNetworking) && !StaticLinking
public import FoundationNetworking
#else
public import Foundation
#endif
#if AsyncHTTPClient && (os(Linux) || os(macOS))
public import Foundation
public import NIOSSL
#endif

#if !StaticLinking
extension Upstream where Self == URLSessionUpstream {
    /// Fetches with URLSession: `MediaCache(directory: directory, upstream: .urlSession())`.
    ///
    /// - Parameters: As of ``URLSessionUpstream/init(_:sessionConfiguration:)``.
    public static func urlSession(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral
    ) -> URLSessionUpstream {
        URLSessionUpstream(configuration, sessionConfiguration: sessionConfiguration)
    }

    #if canImport(Darwin)
    /// Fetches with URLSession from servers whose certificate is pinned, or that ask for a client certificate.
    ///
    /// - Parameters: As of ``URLSessionUpstream/init(_:sessionConfiguration:onChallenge:)``.
    public static func urlSession(
        _ configuration: HTTPUpstream.Configuration = .init(),
        sessionConfiguration: URLSessionConfiguration = .ephemeral,
        onChallenge: @escaping URLSessionUpstream.ChallengeHandler
    ) -> URLSessionUpstream {
        URLSessionUpstream(configuration, sessionConfiguration: sessionConfiguration, onChallenge: onChallenge)
    }
    #endif
}
#endif

#if AsyncHTTPClient && (os(Linux) || os(macOS))
extension Upstream where Self == AsyncHTTPClientUpstream {
    /// Fetches with AsyncHTTPClient: `MediaCache(directory: directory, upstream: .asyncHTTPClient())`.
    ///
    /// - Parameters: As of ``AsyncHTTPClientUpstream/init(_:tlsConfiguration:additionalTrustRoots:)``.
    public static func asyncHTTPClient(
        _ configuration: HTTPUpstream.Configuration = .init(),
        tlsConfiguration: TLSConfiguration = .makeClientConfiguration(), additionalTrustRoots: [URL] = []
    ) -> AsyncHTTPClientUpstream {
        AsyncHTTPClientUpstream(
            configuration, tlsConfiguration: tlsConfiguration, additionalTrustRoots: additionalTrustRoots)
    }
}
#endif
