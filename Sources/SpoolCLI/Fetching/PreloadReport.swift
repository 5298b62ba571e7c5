import Spool
import SpoolProxy

/// How far one media file has been preloaded.
struct PreloadReport: Encodable, Sendable {
    var url: String
    var landed: Int64
    @OrNull var wanted: Int64?
    var complete: Bool

    init(_ source: MediaSource, _ outcome: PreloadOutcome) {
        url = source.displayAddress
        landed = outcome.landed
        _wanted = OrNull(wrappedValue: outcome.wanted)
        complete = outcome.isComplete
    }

    /// One line for a person.
    var text: String {
        let goal = wanted.map { " of \(ByteCount(bytes: $0).text)" } ?? ""
        return "\(ByteCount(bytes: landed).text)\(goal)  \(url)" + (complete ? "" : "  incomplete")
    }
}
