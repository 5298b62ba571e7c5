import Foundation
package import HTTPTypes

extension HTTPFields {
    /// The fields that describe the client, and may be sent to any origin.
    private static let ofClient: Set<HTTPField.Name> = [.accept, .acceptLanguage, .userAgent, .referer]

    /// The ends of names that have no meaning outside a local network (RFC 6761, 6762, 8375).
    private static let localSuffixes = [".localhost", ".local", ".lan", ".internal", ".home.arpa"]

    /// Returns the fields of a request to one origin that may also be sent to another origin.
    ///
    /// These are the fields that describe the client, and those in `others`. `Referer` is reduced to the origin of the
    /// page. Credentials and an app's own fields are removed.
    ///
    /// - Parameters:
    ///   - others: The names of other fields that may be sent.
    ///   - isEncrypted: Whether the request to the other origin is encrypted. If it is not, `Referer` is removed if its
    ///     page is encrypted.
    package func forOtherOrigin(including others: Set<HTTPField.Name> = [], isEncrypted: Bool) -> HTTPFields {
        var fields = HTTPFields(filter { Self.ofClient.contains($0.name) || others.contains($0.name) })
        let page = fields[.referer].flatMap(Self.origin)
        fields[.referer] = isEncrypted || page?.hasPrefix("https:") != true ? page : nil
        return fields
    }

    /// Returns the origin of the page in `Referer`, as browsers send it to other origins (W3C Referrer Policy, section
    /// 3.7). Returns `nil` if the host is an IP address or a local name, or if the value is not a URL.
    private static func origin(ofPage value: String) -> String? {
        guard let url = URLComponents(string: value), let scheme = url.scheme?.lowercased(),
            let host = url.encodedHost?.lowercased(), host.contains("."), host.contains(where: \.isLetter),
            !host.contains(":"), !localSuffixes.contains(where: host.hasSuffix)
        else { return nil }
        return "\(scheme)://\(host)\(url.port.map { ":\($0)" } ?? "")/"
    }
}
