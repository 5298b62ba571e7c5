import Spool
import SpoolProxy

/// How much of one media file of a set is there.
struct OfflineReport: Encodable, Sendable {
    var set: String
    var url: String
    var landed: Int64
    @OrNull var length: Int64?
    var complete: Bool
    @OrNull var missing: Int64?
    private let needsURL: Bool

    private enum CodingKeys: CodingKey { case set, url, landed, length, complete, missing }

    init(_ item: DownloadSet.Item, in set: String) {
        self.set = set
        url = item.address
        landed = item.storedByteCount
        _length = OrNull(wrappedValue: item.length)
        complete = item.isComplete
        _missing = OrNull(wrappedValue: item.missingByteCount)
        needsURL = item.url == nil && !item.isComplete
    }

    /// One line for a person.
    var text: String {
        let goal = length.map { " of \(ByteCount(bytes: $0).text)" } ?? ""
        let state = complete ? "" : needsURL ? "  incomplete; to go on, give its URL again" : "  incomplete"
        return "\(set.shown)  \(ByteCount(bytes: landed).text)\(goal)  \(url)\(state)"
    }

    static func noSet(_ name: String) -> CacheError {
        CacheError(.notStored, "there is no set “\(name.shown)” (“spool offline list” lists them)")
    }
}
