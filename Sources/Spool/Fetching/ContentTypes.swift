/// Says whether one `Content-Type` may be another version of what had another one.
enum ContentTypes {
    /// Whether an origin that served `former` may mean it when it sends `new`: a page in place of a film is a login, a
    /// captive portal or an error, not a new version of the film.
    static func isPlausible(_ new: String?, inPlaceOf former: String?) -> Bool {
        guard let former, let new else { return true }
        return isPage(former) || !isPage(new)
    }

    /// Whether it is a web page, which is never media: who gets one at the first play gets the film at the next.
    static func isWebPage(_ type: String?) -> Bool {
        type.map { ["text/html", "application/xhtml+xml"].contains(name(of: $0)) } ?? false
    }

    /// Whether the type is one that pages and errors come as.
    private static func isPage(_ type: String) -> Bool {
        isWebPage(type) || ["application/json", "application/problem+json", "text/plain"].contains(name(of: type))
    }

    private static func name(of type: String) -> String {
        type.prefix { $0 != ";" }.lowercased().filter { !$0.isWhitespace }
    }
}
