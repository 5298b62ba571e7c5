package import Foundation
import HTTPRanges
package import HTTPTypes
import Synchronization

/// The cookies that origins have set for the requests of one source or one stream (RFC 6265). They exist in memory
/// only.
///
/// A cookie is sent to the host and port that set it. The default ports of `http` and `https` count as one port. The
/// cookie is sent to subdomains of that host, and to its other ports, only if its `Domain` names the host or a parent
/// domain. It is never sent to a parent domain or a sibling, so that no list of public suffixes is needed.
///
/// A jar may be used from any thread. The jar of one source is never used for another source, except for the parts of
/// its stream.
package final class CookieJar: Sendable {
    private struct Cookie {
        let name: String
        let value: String
        let host: String
        /// The port of the origin that set the cookie, or `nil` for the default port of the scheme.
        let port: Int?
        let isForSubdomains: Bool
        let path: String
        let isSecure: Bool
        /// The expiration in seconds since 1970, or `nil` if there is none.
        let end: Int64?

        var bytes: Int { name.utf8.count + value.utf8.count + host.utf8.count + path.utf8.count }

        func replaces(_ other: Cookie) -> Bool {
            name == other.name && host == other.host && path == other.path
                && (port == other.port || isForSubdomains && other.isForSubdomains)
        }
    }

    private let cookies = Mutex<[Cookie]>([])

    /// The maximum number of cookies, and the maximum total size of their names, values, hosts and paths, in bytes. If
    /// a limit is exceeded, the oldest cookies are removed.
    private static let limit = (count: 50, bytes: 8 << 10)

    /// Creates a jar without cookies.
    package init() {}

    /// Whether the jar is empty.
    package var isEmpty: Bool { cookies.withLock { $0.isEmpty } }

    /// Adds and removes cookies as the header fields of a response specify.
    ///
    /// - Parameters:
    ///   - fields: The header fields of the response.
    ///   - url: The URL of the response.
    ///   - now: The current date.
    package func receive(_ fields: HTTPFields, from url: URL, at now: Date) {
        let values = fields[values: .setCookie]
        guard !values.isEmpty, let place = Place(url) else { return }
        let now = Int64(now.timeIntervalSince1970)
        for value in values {
            guard let cookie = SetCookie(parsing: value).flatMap({ Self.cookie($0, from: place, at: now) }) else {
                continue
            }
            cookies.withLock { cookies in
                cookies.removeAll { cookie.replaces($0) }
                guard cookie.end ?? .max > now else { return }
                cookies.append(cookie)
                while cookies.count > Self.limit.count
                    || cookies.reduce(0, { $0 + $1.bytes }) > Self.limit.bytes
                {
                    cookies.removeFirst()
                }
            }
        }
    }

    /// Returns the value of `Cookie` for a request, or `nil` if there is none.
    ///
    /// - Parameters:
    ///   - url: The URL of the request.
    ///   - own: The value of `Cookie` that the request already contains, if any. The result contains this value, and no
    ///     other cookies with the same names.
    ///   - now: The current date.
    package func text(for url: URL, adding own: String? = nil, at now: Date) -> String? {
        let now = Int64(now.timeIntervalSince1970)
        let cookies = cookies.withLock { $0 }
        guard !cookies.isEmpty, let place = Place(url) else { return own }
        let names = Set((own ?? "").split(separator: ";").map { String($0.prefix { $0 != "=" }.drop { $0 == " " }) })
        let found = cookies.filter { place.receives($0) && $0.end ?? .max > now && !names.contains($0.name) }
        // Cookies with longer paths precede other cookies. Cookies with equally long paths keep their order.
        let sorted = found.enumerated().sorted {
            ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset)
        }
        let texts = (own.map { [$0] } ?? []) + sorted.map { "\($0.element.name)=\($0.element.value)" }
        return texts.isEmpty ? nil : texts.joined(separator: "; ")
    }

    /// Returns the cookie, or `nil` if the origin may not set a cookie for its domain.
    private static func cookie(_ set: SetCookie, from place: Place, at now: Int64) -> Cookie? {
        if let domain = set.domain {
            guard place.host == domain || !place.isAddress && place.host.hasSuffix("." + domain) else { return nil }
        }
        let end: Int64? =
            switch set.lifetime {
            case .session: nil
            case .seconds(let seconds): now + seconds
            case .until(let date): date.secondsSince1970
            }
        return Cookie(
            name: set.name, value: set.value, host: place.host, port: place.port,
            isForSubdomains: set.domain != nil && !place.isAddress && place.host.contains("."),
            path: set.path ?? place.directory, isSecure: set.isSecure, end: end)
    }

    /// The part of a URL that determines which cookies a request contains.
    private struct Place {
        let host: String
        /// The port, or `nil` for the default port of the scheme.
        let port: Int?
        let path: String
        let isSecure: Bool

        /// Creates the place of a URL; `nil` if the URL has no host.
        init?(_ url: URL) {
            guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
                let host = parts.encodedHost?.lowercased(), !host.isEmpty
            else { return nil }
            self.host = host
            path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
            isSecure = parts.scheme?.lowercased() == "https"
            port = parts.port == (isSecure ? 443 : 80) ? nil : parts.port
        }

        /// Whether the host is an IP address, which has no subdomains.
        var isAddress: Bool {
            host.contains(":") || host.utf8.last.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
        }

        /// The default path of a cookie (RFC 6265 §5.1.4).
        var directory: String {
            let end = path.lastIndex(of: "/") ?? path.startIndex
            return path.hasPrefix("/") && end > path.startIndex ? String(path[..<end]) : "/"
        }

        /// Returns whether a request receives a cookie, regardless of the cookie's expiration (RFC 6265 §5.4).
        func receives(_ cookie: Cookie) -> Bool {
            guard isSecure || !cookie.isSecure else { return false }
            // Browsers ignore the port (RFC 6265 §8.5). Here, a host-only cookie is not sent to another port, because
            // another port often belongs to another application. The default ports of both schemes count as equal.
            guard
                host == cookie.host && (port == cookie.port || cookie.isForSubdomains)
                    || cookie.isForSubdomains && host.hasSuffix("." + cookie.host),
                path.hasPrefix(cookie.path)
            else { return false }
            return path.utf8.count == cookie.path.utf8.count || cookie.path.hasSuffix("/")
                || path.utf8.dropFirst(cookie.path.utf8.count).first == UInt8(ascii: "/")
        }
    }
}
