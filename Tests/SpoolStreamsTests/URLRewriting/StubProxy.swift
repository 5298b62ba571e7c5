import SpoolProxy
import Testing

@testable import SpoolStreams

/// The URLs that a forward proxy with a token writes for its clients, and the requests that the clients send.
struct StubProxy {
    static let prefix = "/~TOKEN"

    static func path(_ url: OriginURL) -> String { prefix + ForwardAddress.requestTarget(for: url) }

    /// Returns the URL that the proxy requests if a client resolves `reference` in the response for `requested`.
    /// Returns `nil` if the client does not use the proxy.
    static func origin(of reference: String, in requested: OriginURL) throws -> OriginURL? {
        let proxy = "http://127.0.0.1:8787"
        let asked = URIReference(reference).resolved(against: URIReference(proxy + path(requested)))
        guard asked.scheme == "http", asked.authority == "127.0.0.1:8787" else { return nil }
        let target = asked.path + (asked.query.map { "?" + $0 } ?? "")
        guard target.hasPrefix(prefix + "/") else { throw AddressError(.scheme, "\(target) is not for anybody") }
        return try ForwardAddress.origin(of: target.dropFirst(prefix.count).replacing(" ", with: "%20"))
    }

    /// Returns the URL that a client requests without the proxy; `nil` if the proxy can't request this URL.
    static func direct(_ reference: String, in final: OriginURL) -> OriginURL? {
        try? OriginURL(URIReference(reference).resolved(against: URIReference(final.description)))
    }

    /// Returns whether resolving `written` through the proxy yields the same URL as resolving `original` without the
    /// proxy.
    static func isSame(
        _ written: String, as original: String, final: OriginURL, requested: OriginURL
    ) throws -> Bool {
        guard let direct = direct(original, in: final) else { return written == original }
        return try origin(of: written, in: requested) == direct
    }
}

/// Random references of every form, valid and invalid.
enum RandomReference {
    static func draw(using generator: inout some RandomNumberGenerator) -> String {
        let segments = [
            "a", "b.ts", "..", ".", "", "c%2Fd", "é", "x y", "$Number%05d$", "%2e%2e", "e;f=1", "~TOKEN", "http",
        ]
        let hosts = [
            "origin.example", "cdn.example:8080", "CDN.example:80", "[2001:db8::1]:443", "h:", "h:0", "a..b", "",
        ]
        let schemes = ["http", "https", "HTTP", "skd", "data", "urn"]
        let path = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
            segments.randomElement(using: &generator) ?? ""
        }
        var text = path.joined(separator: "/")
        let user = Int.random(in: 0..<12, using: &generator) == 0 ? "user:pass@" : ""
        let host = user + (hosts.randomElement(using: &generator) ?? "")
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: text = "/" + text
        case 1: text = "//\(host)/\(text)"
        case 2: text = "\(schemes.randomElement(using: &generator) ?? "")://\(host)/\(text)"
        case 3: text = String(repeating: "../", count: Int.random(in: 1...5, using: &generator)) + text
        default: break
        }
        if Int.random(in: 0..<4, using: &generator) == 0 { text += "?q=1&r=/../x" }
        if Int.random(in: 0..<6, using: &generator) == 0 { text += "#part" }
        return text
    }
}
