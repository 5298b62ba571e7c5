/// Media files that no record names and that could not be removed: they keep their claims until they can be.
///
/// A value without I/O. ``Store`` tries to remove them again when space is needed, a few at a time.
struct UnremovedFiles: Sendable {
    /// Removals that have to fail one after the other until nothing more is evicted.
    static let failureLimit = 4
    /// How many files an eviction tries to remove again.
    static let retryCount = 4

    /// The files, the one tried longest ago first.
    private var files: [(identifier: GenerationIdentifier, claim: Int64)] = []
    private var failures = 0

    /// The bytes that they claim together.
    private(set) var byteCount: Int64 = 0

    /// Whether evicting more would only lose media: the last removals have all failed.
    var isRemovingHopeless: Bool { failures >= Self.failureLimit }

    /// Adds a file that could not be removed.
    ///
    /// - Parameter isEvicted: Whether an eviction or removal failed. A file that an earlier process left behind says
    ///   nothing about other files. The default is `true`.
    mutating func add(_ identifier: GenerationIdentifier, _ claim: Int64, isEvicted: Bool = true) {
        if isEvicted { failures = min(failures + 1, Self.failureLimit) }
        files.append((identifier, claim))
        byteCount += claim
    }

    /// Takes the files to try again now. Each is put back with ``putBack(_:_:)`` or reported with ``noteRemoval(claim:)``.
    mutating func takeForRetry() -> [(identifier: GenerationIdentifier, claim: Int64)] {
        let taken = Array(files.prefix(Self.retryCount))
        files.removeFirst(taken.count)
        return taken
    }

    /// Puts a file back that could not be removed this time either.
    mutating func putBack(_ identifier: GenerationIdentifier, _ claim: Int64) { files.append((identifier, claim)) }

    /// A file has been removed: removing works.
    ///
    /// - Parameter claim: Its claim if it had been taken for a retry.
    mutating func noteRemoval(claim: Int64 = 0) {
        failures = 0
        byteCount -= claim
    }

    /// Whether the file is one of them.
    func contains(_ identifier: GenerationIdentifier) -> Bool { files.contains { $0.identifier == identifier } }
}
