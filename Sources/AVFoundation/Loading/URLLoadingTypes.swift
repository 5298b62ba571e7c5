#if StaticLinking
public import Foundation

// Foundation's URL loading types that a resource loader's delegate uses. FoundationNetworking cannot be linked
// statically.

/// A request for a URL.
public struct URLRequest: Hashable, Sendable {
    /// The requested URL.
    public var url: URL?

    /// Creates a request for a URL.
    public init(url: URL) { self.url = url }
}

/// The response from a server.
open class URLResponse: NSObject, NSCopying {
    /// The requested URL.
    public let url: URL?

    init(_ url: URL) { self.url = url }

    /// Returns the same object, because it is immutable.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// An HTTP response.
public final class HTTPURLResponse: URLResponse {
    /// The status code.
    public let statusCode: Int
    /// The header fields, with unchanged names.
    public let allHeaderFields: [AnyHashable: Any]

    /// Creates a response. The initializer never returns `nil`.
    public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) {
        self.statusCode = statusCode
        allHeaderFields = headerFields ?? [:]
        super.init(url)
    }
}

/// A server's request for credentials. It is never used here.
open class URLAuthenticationChallenge: NSObject {}
#else
// Like Apple's AVFoundation, this module exports Foundation. On Linux, the URL loading types are in a separate module,
// which is also exported. Adapters for both platforms therefore do not need to import that module.
@_exported public import FoundationNetworking
#endif
