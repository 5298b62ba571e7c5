import Foundation
import HTTPRanges
import HTTPTypes

/// The headers of a response, in the form in which they are stored with a version.
struct StoredHead: Codable, Sendable, Hashable {
    /// The maximum size of the stored header fields of a response, in bytes, counting names and values. An additional
    /// 16 KiB is available for fields that are stored separately. If the fields are larger, those that are not needed
    /// are omitted.
    static let limit = 16 << 10

    /// Returns whether fields that can't be omitted exceed the limit. These are the separately stored fields, which
    /// distinguish versions and variants, and those that protect the origin's pages. A response with such fields is
    /// passed on without being stored.
    static func exceedsLimit(_ fields: HTTPFields) -> Bool {
        let needed: [HTTPField.Name] = [.eTag, .lastModified, .contentType, .contentEncoding, .vary]
        return needed.reduce(0) { sum, name in fields[values: name].reduce(sum) { $0 + $1.utf8.count } } > limit
            || EndToEndFields.protectiveBytes(of: fields) > limit
    }

    /// The status of the whole resource: 200 if the response was a part.
    var status: Int
    /// The names and values, in order, as ``EndToEndFields/storable(_:isOfSite:)`` returns them.
    private var lines: [[String]]
    /// Whether the response contained cookies that are not among the fields; `nil` if not.
    private(set) var dropsCookies: Bool?
    /// The URL after redirects, without user, query and fragment; `nil` if the URL is not stored. See
    /// ``storableAddress(_:_:of:)``.
    var url: String?

    /// Creates the headers to store from the headers of a response.
    ///
    /// - Parameters:
    ///   - url: The URL after redirects.
    ///   - redactedURL: The URL of the resource, as the catalog stores it.
    ///   - isOfSite: See ``EndToEndFields/storable(_:isOfSite:)``.
    init(_ head: HTTPResponse, from url: URL?, of redactedURL: String? = nil, isOfSite: Bool = false) {
        status = head.status == .partialContent ? 200 : head.status.code
        lines = []
        self.url = url.flatMap { Self.storableAddress($0, head.headerFields, of: redactedURL) }
        var fields = head.headerFields
        if status != head.status.code {
            // The fields of a partial response are stored as fields of the whole resource.
            fields[.contentRange] = nil
            fields = EndToEndFields.withoutMessageDigests(fields)
        } else if head.status == .notModified, let name = HTTPField.Name("Content-Digest") {
            fields[name] = nil  // This is the digest of the empty 304 response (RFC 9530 §2).
        }
        fields = EndToEndFields.storable(fields, isOfSite: isOfSite)
        self.fields = fields
        if EndToEndFields.hasCookies(head.headerFields), !EndToEndFields.hasCookies(fields) { dropsCookies = true }
    }

    /// Returns the URL to store with a response.
    ///
    /// The result is the URL of the resource, which the catalog always contains, or the final URL of a playlist, to
    /// which references are relative. In all other cases, the result is `nil`, because the path of a redirect or of a
    /// resolved URL may be secret.
    private static func storableAddress(_ url: URL, _ fields: HTTPFields, of redactedURL: String?) -> String? {
        let type = fields[.contentType]?.lowercased() ?? ""
        let isManifest =
            ["mpegurl", "dash+xml", "text/", "xml"].contains { type.contains($0) } || ManifestHint.isInPath(url.path)
        let stored = MediaSource.redactedURL(of: url)
        return isManifest || stored == redactedURL ? stored : nil
    }

    /// The header fields, with a limited size.
    var fields: HTTPFields {
        get {
            HTTPFields(
                lines.compactMap { line in
                    guard line.count == 2, let name = HTTPField.Name(line[0]) else { return nil }
                    return HTTPField(name: name, value: line[1])
                })
        }
        set { lines = EndToEndFields.bounded(newValue, to: Self.limit).map { [$0.name.rawName, $0.value] } }
    }

    /// Returns the headers, updated by a later response for the same version: a 304 response or another part (RFC 9111
    /// §3.2, §3.4).
    func updated(by newer: StoredHead) -> StoredHead {
        var result = self
        let updated = EndToEndFields.updating(fields, by: newer.fields)
        if EndToEndFields.hasCookies(fields), !EndToEndFields.hasCookies(updated) { result.dropsCookies = true }
        result.fields = updated
        result.url = newer.url ?? url
        return result
    }
}
