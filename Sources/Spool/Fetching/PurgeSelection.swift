import Foundation
import HTTPTypes
import SpoolStorage

/// A selection of stored resources to remove.
package enum PurgeSelection: Sendable, Hashable {
    /// All resources whose URL starts with this text. The text consists of a scheme, a host and a path.
    case prefix(String)
    /// All resources to which their origin assigned this tag, in `Surrogate-Key` or `Cache-Tag`.
    case tag(String)

    /// Creates a selection of the resources whose URLs start with this text.
    ///
    /// - Returns: `nil` if the text is not a URL with a host, or contains a query, a fragment, a user name or a
    ///   password.
    package init?(prefix text: String) {
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
            let host = parts.percentEncodedHost?.lowercased(), !host.isEmpty, parts.query == nil,
            parts.fragment == nil, parts.user == nil, parts.password == nil
        else { return nil }
        let usual = scheme == "http" ? 80 : scheme == "https" ? 443 : nil
        let port = parts.port.flatMap { $0 == usual ? nil : ":\($0)" } ?? ""
        // Without a slash, the end of a host would also match longer host names.
        self = .prefix(
            "\(scheme)://\(host)\(port)" + (parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath))
    }

    /// Creates a selection of the resources with a tag.
    ///
    /// - Returns: `nil` if the text can't be a tag, because it is empty, longer than 1024 bytes, or contains a
    ///   separator.
    package init?(tag text: String) {
        guard !text.isEmpty, text.utf8.count <= 1024,
            !text.contains(where: { $0.isWhitespace || $0 == "," || $0.isNewline })
        else { return nil }
        self = .tag(text)
    }

    /// Returns whether a URL, without its query, starts with the prefix. Returns `false` for a tag.
    package func includes(url: String) -> Bool {
        guard case .prefix(let prefix) = self else { return false }
        return Self.normalized(url).hasPrefix(prefix)
    }

    /// Returns whether the URL of a stored resource starts with the prefix, or whether the resource has the tag.
    func includes(_ record: StoredResourceRecord) -> Bool {
        switch self {
        case .prefix: return includes(url: record.url)
        case .tag(let tag):
            guard let description = record.description else { return false }
            return Self.tags(in: StoredResponse(description, isStored: true).fields).contains(tag)
        }
    }

    /// Returns a stored URL in normalized form. The scheme and host are in lower case, the scheme's default port is
    /// omitted, and an empty path is replaced with `/`.
    private static func normalized(_ url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return url }
        let end = url[start...].firstIndex(of: "/") ?? url.endIndex
        var origin = url[..<end].lowercased()
        for (scheme, port) in [("http:", ":80"), ("https:", ":443")]
        where origin.hasPrefix(scheme) && origin.hasSuffix(port) {
            origin.removeLast(port.count)
        }
        return origin + (end == url.endIndex ? "/" : url[end...])
    }

    /// Returns the tags of a response. Tags are separated by spaces in `Surrogate-Key`, and by commas in `Cache-Tag`.
    private static func tags(in fields: HTTPFields) -> Set<String> {
        var tags: Set<String> = []
        for field in fields {
            switch field.name.canonicalName {
            case "surrogate-key", "cache-tag":
                tags.formUnion(field.value.split { $0 == " " || $0 == "," || $0 == "\t" }.map(String.init))
            default: break
            }
        }
        return tags
    }
}
