/// Something that must not happen, and did.
struct Finding: Sendable, CustomStringConvertible {
    /// What kind of thing it is.
    enum Kind: String, Sendable, CaseIterable, Comparable {
        /// A reader got bytes that no version has there, or bytes of two.
        case wrongBytes
        /// A reader went on somewhere else, or ended before its end.
        case wrongPlace
        /// A reader got an error that nothing that had happened explains.
        case unexpectedError
        /// Something waited longer than it may, or for ever.
        case hang
        /// What is counted as kept is not what is recorded as kept.
        case ledger
        /// What is recorded as kept is not what the files hold.
        case disk
        /// More was kept than may be.
        case capacity
        /// More memory was used than may be.
        case memory
        /// Bytes were sent again without need.
        case sentAgain
        /// An origin was asked again before it had been left alone for long enough.
        case askedTooEarly
        /// An origin was asked for what nobody waits for while a player waited.
        case preloadedFirst
        /// A transfer was in flight although nobody wanted anything.
        case transferAtRest
        /// Media files stayed of which nobody knows.
        case orphans
        /// Files were open after everything had been closed.
        case openFiles
        /// Resources were open, or leases held, by nobody.
        case leases
        /// An operation on the cache failed, or told something untrue.
        case operation

        static func < (a: Kind, b: Kind) -> Bool { a.rawValue < b.rawValue }
    }

    var kind: Kind
    var text: String

    var description: String { "\(kind): \(text)" }

    /// The same for findings that differ in numbers and names only.
    var signature: String {
        var words = description.split(separator: " ").map {
            $0.contains("/") || $0.contains("Range(") ? "…" : String($0)
        }
        words = words.map { $0.contains(where: \.isNumber) ? "#" : $0 }
        return words.joined(separator: " ")
    }
}

/// How a play went.
struct PlayReport: Sendable {
    var seed: UInt64
    var findings: [Finding]
    /// Readers opened, chores done, openings and ends of the cache.
    var operations: Int
    var steps: Int
    /// What it took, in real time.
    var time: Duration
    var digest: UInt64
    var lines: [String]
}
