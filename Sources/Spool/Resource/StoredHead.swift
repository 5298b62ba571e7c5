import Foundation
import HTTPRanges
import HTTPTypes

/// A response's head, in the form in which it is kept with a version.
struct StoredHead: Codable, Sendable, Hashable {
    /// The limit of what is stored of a response's header fields, in bytes of names and values: 16 KiB of the fields
    /// themselves, of which the largest that are not needed are left out, and as much of those that are stored apart,
    /// too.
    static let limit = 16 << 10

    /// Whether the fields that are stored apart, and can't be left out, are longer than the limit: those that tell
    /// versions and variants from each other. Such a response is passed on without being stored.
    static func exceedsLimit(_ fields: HTTPFields) -> Bool {
        let needed: [HTTPField.Name] = [.eTag, .lastModified, .contentType, .contentEncoding, .vary]
        return needed.reduce(0) { sum, name in fields[values: name].reduce(sum) { $0 + $1.utf8.count } } > limit
    }

    /// Of the whole: 200 where a part came.
    var status: Int
    /// Names and values, in order; as ``EndToEndFields/storable(_:isOfSite:)`` leaves them.
    private var lines: [[String]]
    /// Whether it had cookies that are not among them; nil: no.
    private(set) var dropsCookies: Bool?
    /// The address after redirects, without user, query and fragment; `nil` if it is not stored, see
    /// ``storableAddress(_:_:of:)``.
    var url: String?

    /// - Parameters:
    ///   - url: The address after redirects.
    ///   - address: The address of the resource, as the catalog stores it.
    ///   - isOfSite: See ``EndToEndFields/storable(_:isOfSite:)``.
    init(_ head: HTTPResponse, from url: URL?, of address: String? = nil, isOfSite: Bool = false) {
        status = head.status == .partialContent ? 200 : head.status.code
        lines = []
        self.url = url.flatMap { Self.storableAddress($0, head.headerFields, of: address) }
        var fields = head.headerFields
        if status != head.status.code { fields[.contentRange] = nil }
        fields = EndToEndFields.storable(fields, isOfSite: isOfSite)
        self.fields = fields
        if EndToEndFields.hasCookies(head.headerFields), !EndToEndFields.hasCookies(fields) { dropsCookies = true }
    }

    /// The address to store with a response: that of the resource, which the catalog has in any case, or that of a
    /// playlist, to which its references are relative. `nil` for others, because the path to which a redirect or a
    /// resolver leads may be secret.
    private static func storableAddress(_ url: URL, _ fields: HTTPFields, of address: String?) -> String? {
        let type = fields[.contentType]?.lowercased() ?? ""
        let isManifest =
            ["mpegurl", "dash+xml", "text/", "xml"].contains { type.contains($0) }
            || ["m3u8", "m3u", "mpd"].contains(url.pathExtension.lowercased())
        let stored = MediaSource.displayAddress(of: url)
        return isManifest || stored == address ? stored : nil
    }

    /// Its fields, bounded.
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

    /// After a later response of the same version: a 304, or another part (RFC 9111 §3.2, §3.4).
    func updated(by newer: StoredHead) -> StoredHead {
        var result = self
        let updated = EndToEndFields.updating(fields, by: newer.fields)
        if EndToEndFields.hasCookies(fields), !EndToEndFields.hasCookies(updated) { result.dropsCookies = true }
        result.fields = updated
        result.url = newer.url ?? url
        return result
    }
}
