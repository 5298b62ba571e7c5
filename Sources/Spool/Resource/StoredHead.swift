import Foundation
import HTTPRanges
import HTTPTypes

/// A response's head, in the form in which it is kept with a version.
struct StoredHead: Codable, Sendable, Hashable {
    /// The limit of what is stored of a response's header fields, in bytes of names and values: 16 KiB of the fields
    /// themselves, of which the largest that are not needed are left out, and as much of those that are stored apart, too.
    static let limit = 16 << 10

    /// Whether the fields that are stored apart, and can't be left out, are longer than the limit: those that tell versions
    /// and variants from each other. Such a response is passed on without being stored.
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
    /// Where it came from after redirects, without user, query and fragment, which may be secret.
    var url: String?

    /// - Parameter isOfSite: See ``EndToEndFields/storable(_:isOfSite:)``.
    init(_ head: HTTPResponse, from url: URL?, isOfSite: Bool = false) {
        status = head.status == .partialContent ? 200 : head.status.code
        lines = []
        self.url = url.map { MediaSource.displayAddress(of: $0) }
        var fields = head.headerFields
        if status != head.status.code { fields[.contentRange] = nil }
        fields = EndToEndFields.storable(fields, isOfSite: isOfSite)
        self.fields = fields
        if EndToEndFields.hasCookies(head.headerFields), !EndToEndFields.hasCookies(fields) { dropsCookies = true }
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
