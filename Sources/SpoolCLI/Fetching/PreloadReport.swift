import Spool
import SpoolProxy

/// How far one media file has been preloaded.
struct PreloadReport: Encodable, Sendable {
    var url: String
    var landed: Int64
    @OrNull var wanted: Int64?
    var complete: Bool

    init(_ source: MediaSource, _ state: PreloadState) {
        url = source.displayAddress
        landed = state.landedByteCount
        _wanted = OrNull(wrappedValue: state.wantedByteCount)
        complete = state.isComplete
    }

    /// One line for a person.
    var text: String {
        let goal = wanted.map { " of \(ByteCount(bytes: $0).text)" } ?? ""
        return "\(ByteCount(bytes: landed).text)\(goal)  \(url)" + (complete ? "" : "  incomplete")
    }
}
