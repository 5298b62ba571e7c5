#if Proxy
extension OriginURL {
    /// The URL without its query, for an error's sentence.
    var nameForMessages: String {
        "\(scheme.rawValue)://\(authority)\(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") }))"
            .escapedForMessage
    }
}
#endif
