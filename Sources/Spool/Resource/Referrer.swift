import Foundation
package import HTTPTypes

extension HTTPFields {
    /// The fields that describe the client, and may be sent to any origin.
    private static let ofClient: Set<HTTPField.Name> = [.accept, .acceptLanguage, .userAgent, .referer]

    /// Returns the fields of a request to one origin that may also be sent to another origin.
    ///
    /// These are the fields that describe the client, and those in `others`. `Referer` is reduced to the origin of the
    /// page. Credentials and an app's own fields are removed.
    ///
    /// - Parameters:
    ///   - others: The names of other fields that may be sent.
    ///   - isDowngrade: Whether the first request is encrypted and the request to the other origin is not. `Referer` is
    ///     then removed.
    package func forOtherOrigin(including others: Set<HTTPField.Name> = [], isDowngrade: Bool) -> HTTPFields {
        var fields = HTTPFields(filter { Self.ofClient.contains($0.name) || others.contains($0.name) })
        fields[.referer] = isDowngrade ? nil : fields[.referer].flatMap(Self.origin)
        return fields
    }

    /// Returns the origin of the page in `Referer`, as browsers send it to other origins (W3C Referrer Policy, section
    /// 3.7). Returns `nil` if the host is an IP address or a local name, or if the value is not a URL.
    private static func origin(ofPage value: String) -> String? {
        guard let url = URLComponents(string: value), let scheme = url.scheme, let host = url.encodedHost,
            host.contains("."), host.contains(where: \.isLetter), !host.contains(":"), !host.hasSuffix(".localhost")
        else { return nil }
        return "\(scheme)://\(host)\(url.port.map { ":\($0)" } ?? "")/"
    }
}
