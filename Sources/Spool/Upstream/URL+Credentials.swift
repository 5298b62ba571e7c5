package import Foundation

extension URL {
    /// This URL without user and password, and both as a Basic `Authorization` (RFC 7617 §2); nil if it names neither.
    ///
    /// `http://user:password@host` is an address and a secret in one: the address may be shown and made a key of, the
    /// secret may not.
    package var separatingCredentials: (url: URL, authorization: String?) {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true),
            parts.percentEncodedUser != nil || parts.percentEncodedPassword != nil
        else { return (self, nil) }
        let user = parts.percentEncodedUser ?? ""
        let password = parts.percentEncodedPassword ?? ""
        parts.percentEncodedUser = nil
        parts.percentEncodedPassword = nil
        guard let url = parts.url else { return (self, nil) }
        guard !user.isEmpty || !password.isEmpty else { return (url, nil) }
        let text = "\(user.removingPercentEncoding ?? user):\(password.removingPercentEncoding ?? password)"
        return (url, "Basic " + Data(text.utf8).base64EncodedString())
    }
}
