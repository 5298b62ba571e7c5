#if Proxy
/// Hosts that are meant by one pattern: `media.example.com`, `*.example.com` (any depth, not the name itself), `*`; with
/// `:port` one port alone.
struct HostPattern: Sendable, Hashable {
    private let host: String
    private let isSuffix: Bool
    private let port: Int?

    /// Reads a pattern; nil if it is none.
    init?(_ text: String) {
        if text == "*" {
            (host, isSuffix, port) = ("", true, nil)
            return
        }
        isSuffix = text.hasPrefix("*.")
        // The caller says which it was.
        guard let parts = try? HostAndPort(text.dropFirst(isSuffix ? 2 : 0)) else { return nil }
        host = (isSuffix ? "." : "") + parts.host
        port = parts.port
    }

    /// Whether a host, in lower case, and the port that is asked there are meant.
    func matches(_ host: String, port: Int) -> Bool {
        if let wanted = self.port, wanted != port { return false }
        return isSuffix ? host.hasSuffix(self.host) : host == self.host
    }
}
#endif
