#if StaticLinking
public import Foundation

// What a resource loader's delegate touches of Foundation's URL loading, where that is not there: FoundationNetworking can't
// be linked statically.

/// A URL that is asked for.
public struct URLRequest: Hashable, Sendable {
    /// What is asked for.
    public var url: URL?

    /// A request for a URL.
    public init(url: URL) { self.url = url }
}

/// What was said of a URL by who has it.
open class URLResponse: NSObject, NSCopying {
    /// What was asked for.
    public let url: URL?

    init(_ url: URL) { self.url = url }

    /// The same object: it does not change.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// A response by HTTP.
public final class HTTPURLResponse: URLResponse {
    /// The status code.
    public let statusCode: Int
    /// The header fields, by their names as they were given.
    public let allHeaderFields: [AnyHashable: Any]

    /// A response of these; never nil.
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
        self.statusCode = statusCode
        allHeaderFields = headerFields ?? [:]
        super.init(url)
    }
}

/// A server's question for credentials. The stand-in never asks.
open class URLAuthenticationChallenge: NSObject {}
#else
// Like Apple's, this module brings Foundation along; on Linux the URL loading types live in a module of their own, which an
// adapter written for both must not have to name.
@_exported public import FoundationNetworking
#endif
