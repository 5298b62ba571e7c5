@testable import SpoolStreams

/// The final URL and the requested URL of a manifest, and the requests of a client that receives the manifest from a
/// proxy.
struct Place {
    let final: OriginURL
    let requested: OriginURL

    static let prefix = "/~TOKEN"
    private static let urls = [
        "https://origin.example/dir/sub/list.m3u8?q=1&v=%2F%2Fcdn.example%22", "http://origin.example/",
        "http://[::1]:80/a//b/c",
        "https://origin.example:443/dir/sub/other",
    ].map { try! OriginURL($0) }  // All are valid URLs.

    init(number: UInt8) {
        final = Self.urls[Int(number % 4)]
        requested = number & 16 == 0 ? final : Self.urls[Int(number / 4 % 4)]
    }

    static func path(_ url: OriginURL) -> String { prefix + ForwardAddress.requestTarget(for: url) }

    /// Returns the URL that the proxy requests if a client resolves `reference` in the response for `requested`.
    func origin(of reference: String) -> OriginURL? {
        let proxy = URIReference("http://127.0.0.1:8787" + Self.path(requested))
        guard let asked = try? OriginURL(URIReference(reference).resolved(against: proxy)),
            asked.authority == "127.0.0.1:8787", asked.target.hasPrefix(Self.prefix + "/")
        else { return nil }
        return try? ForwardAddress.origin(of: asked.target.dropFirst(Self.prefix.count))
    }

    /// Checks that `written` refers a client of the proxy to the target of `original` in the manifest.
    func check(_ written: String, _ original: String) {
        let parts = URIReference(original)
        if parts.path.isEmpty && parts.query == nil && parts.scheme == nil && parts.authority == nil { return }
        guard let meant = try? OriginURL(parts.resolved(against: URIReference(final.description))) else { return }
        let got = origin(of: written)
        precondition(
            got.map { Self.plain($0.description) } == Self.plain(meant.description),
            "\(original) in \(final), requested as \(requested), became \(written)")
    }

    /// Returns the text, with escapes for the characters that are valid in a variable's value but not in an attribute.
    private static func plain(_ text: String) -> String {
        text.replacing("\"", with: "%22").replacing("{$", with: "%7B$")
    }
}
