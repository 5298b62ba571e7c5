/// A fault that a simulated run found.
struct Finding: Sendable, CustomStringConvertible {
    /// The kind of a fault.
    enum Kind: String, Sendable, CaseIterable, Comparable {
        /// A reader got bytes that belong to no version, or to two versions.
        case wrongBytes
        /// A reader continued at the wrong offset, or ended too early.
        case wrongPlace
        /// A reader got an error that nothing in the run explains.
        case unexpectedError
        /// A wait exceeded its limit, or never ended.
        case hang
        /// The counted bytes differ from the recorded bytes.
        case ledger
        /// The recorded bytes differ from the bytes in the files.
        case disk
        /// The stored bytes exceeded the capacity.
        case capacity
        /// The used memory exceeded its limit.
        case memory
        /// Bytes were sent again without a reason.
        case sentAgain
        /// A request was repeated too early after a failure.
        case retriedTooEarly
        /// A preload request was sent while a player waited.
        case preloadedFirst
        /// A transfer was in progress even though no reader needed its bytes.
        case unneededTransfer
        /// Media files that no record refers to remained.
        case orphans
        /// Files were open after all caches were closed.
        case openFiles
        /// Resources were open, or leases existed, even though they were not in use.
        case leases
        /// An operation on the cache failed, or returned a wrong result.
        case operation

        static func < (a: Kind, b: Kind) -> Bool { a.rawValue < b.rawValue }
    }

    var kind: Kind
    var text: String

    var description: String { "\(kind): \(text)" }

    /// A string that is the same for findings that differ only in numbers and names.
    var signature: String {
        var words = description.split(separator: " ").map {
            $0.contains("/") || $0.contains("Range(") ? "…" : String($0)
        }
        words = words.map { $0.contains(where: \.isNumber) ? "#" : $0 }
        return words.joined(separator: " ")
    }
}

/// The result of a simulated run.
struct PlaybackReport: Sendable {
    var seed: UInt64
    var findings: [Finding]
    /// The number of operations: opened readers, housekeeping tasks, and starts and ends of the cache's lifetimes.
    var operations: Int
    var steps: Int
    /// The duration in real time.
    var time: Duration
    var digest: UInt64
    var lines: [String]
}
