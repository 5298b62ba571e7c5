import Spool

/// Says what BoringSSL reports of a TLS connection that did not come about.
///
/// Its own words name files and lines of its sources, and where those were built.
struct HandshakeFailure {
    /// BoringSSL's reasons, such as `CERTIFICATE_VERIFY_FAILED`, the first one first.
    let reasons: [String]
    private let isCutOff: Bool

    /// Reads an error as it describes itself.
    init(description: String) {
        reasons = description.matches(of: /OPENSSL_internal:([A-Z0-9_]+)/).map { String($0.1) }
        isCutOff = reasons.isEmpty && description.contains("EOF during handshake")
    }

    /// The kind of error, and the words that follow the URL's name.
    var reading: (UpstreamError.Code, String) {
        if isCutOff { return (.connectionLost, "closed the connection before it was secure") }
        if reasons.contains("CERTIFICATE_VERIFY_FAILED") {
            return (.untrusted, "is not trusted: its certificate can't be verified")
        }
        if reasons.contains("WRONG_VERSION_NUMBER") || reasons.contains("HTTP_REQUEST") {
            return (.untrusted, "does not speak TLS")
        }
        if reasons.contains(where: { $0.hasSuffix("PROTOCOL_VERSION") || $0 == "UNSUPPORTED_PROTOCOL" }) {
            return (.untrusted, "is not trusted: it does not speak TLS 1.2 or later")
        }
        let words = reasons.first.map { ": " + $0.lowercased().replacing("_", with: " ") } ?? ""
        return (.untrusted, "is not trusted: the TLS handshake failed\(words)")
    }
}
