import Foundation
import HTTPRanges
import HTTPTypes

/// A response's head, in the form in which it is kept with a version.
struct StoredHead: Codable, Sendable, Hashable {
    /// The most bytes of names and values that are kept.
    static let limit = 16 << 10

    /// Of the whole: 200 where a part came.
    var status: Int
    /// Names and values, in order; as ``EndToEndFields/storable(_:)`` leaves them.
    private var lines: [[String]]
    /// Where it came from after redirects, without user, query and fragment, which may be secret.
    var url: String?

    init(_ head: HTTPResponse, from url: URL?) {
        status = head.status == .partialContent ? 200 : head.status.code
        lines = []
        self.url = url.map { MediaSource.displayAddress(of: $0) }
        fields = EndToEndFields.storable(head.headerFields)
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
        result.fields = EndToEndFields.updating(fields, by: newer.fields)
        result.url = newer.url ?? url
        return result
    }
}
