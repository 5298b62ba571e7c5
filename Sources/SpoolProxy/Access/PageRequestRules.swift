#if Proxy
/// The rules for requests to the API of the live page: only that page, and programs, may send them.
///
/// In forward mode, pages from all origins share this server's address. Their documents are in a sandbox, so their
/// requests count as cross-site. Some browsers send only some of the fields that identify the sender. A request is
/// therefore rejected if any of these fields names another page (Fetch Metadata, §2, and RFC 9110 §10.1.3).
enum PageRequestRules {
    /// Checks the sender of a request.
    ///
    /// - Throws: `RequestFailure` with status 403 if a web page other than the live page seems to have sent it.
    static func check(_ head: RequestHead) throws(RequestFailure) {
        let fields = head.fields
        guard !AccessRules.isFromOtherPage(fields) else { throw rejection }
        for value in fields.values("sec-fetch-dest") + fields.values("sec-fetch-mode") where !allowed.contains(value) {
            throw rejection
        }
        let isNavigation = fields["sec-fetch-mode"] == "navigate"
        guard !isNavigation || head.method == .get || head.method == .head else { throw rejection }
        for value in fields.values("origin") {
            guard let host = head.host, isOrigin(value, host) else { throw rejection }
        }
        for value in fields.values("referer") {
            guard let host = head.host, isLivePage(value, host) else { throw rejection }
        }
    }

    /// The allowed values of `Sec-Fetch-Dest` and `Sec-Fetch-Mode`, which browsers send for requests from scripts and
    /// for downloads.
    private static let allowed: Set<String> = ["empty", "document", "cors", "same-origin", "no-cors", "navigate"]

    private static let rejection = RequestFailure(403, "only the live page of this server may send this request")

    private static func isOrigin(_ origin: String, _ host: String) -> Bool {
        let origin = origin.lowercased()
        return ["http://", "https://"].contains { origin == $0 + host.lowercased() }
    }

    /// Returns whether a referrer is a page below `/.spool/`, with or without a token before that path.
    private static func isLivePage(_ referrer: String, _ host: String) -> Bool {
        guard let start = referrer.firstRange(of: "://")?.upperBound else { return false }
        let end = referrer[start...].firstIndex { "/?#".contains($0) } ?? referrer.endIndex
        guard isOrigin(String(referrer[..<end]), host) else { return false }
        var path = referrer[end...].prefix { $0 != "?" && $0 != "#" }
        if let token = AccessRules.afterTilde(path) { path = token.drop { $0 != "/" } }
        return path.hasPrefix("/.spool/")
    }
}
#endif
