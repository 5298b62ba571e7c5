import SpoolScheduling
import SpoolStorage

/// The version that each reader of one resource reads, and the reason why the reader may use it.
///
/// This type does not depend on offsets. A reader that has not read yet uses the current version.
struct ReaderVersions {
    /// The version of a reader.
    enum Status {
        /// The current version, even if there is none yet.
        case current
        /// This version, which is no longer the current one.
        case previous(Lease)
        /// The reader needs its own response, because serving it here would end the readers of the current version.
        case separate
    }

    private struct Entry {
        var status = Status.current
        /// The source of the version, or `nil` if it is not known yet whether the reader may use the version.
        var source: OpenedResponse.Source?
        /// Whether the reader waits for response headers, rather than for bytes.
        var awaitsHead = false
    }

    private var entries: [ReaderID: Entry] = [:]

    // MARK: - Queries

    func status(of id: ReaderID) -> Status { entries[id]?.status ?? .current }

    /// Returns the source of the reader's version, or `nil` if it is not known yet whether the reader may use that
    /// version.
    func source(of id: ReaderID) -> OpenedResponse.Source? { entries[id]?.source }

    /// Returns whether the reader waits for response headers, rather than for bytes.
    func awaitsHead(_ id: ReaderID) -> Bool { entries[id]?.awaitsHead ?? false }

    // MARK: - Changes

    mutating func open(_ id: ReaderID, source: OpenedResponse.Source?) { entries[id] = Entry(source: source) }

    mutating func close(_ id: ReaderID) { entries[id] = nil }

    mutating func setSource(_ source: OpenedResponse.Source, of id: ReaderID) { entries[id]?.source = source }

    mutating func setAwaitsHead(_ id: ReaderID, _ awaits: Bool) { entries[id]?.awaitsHead = awaits }

    /// Makes the readers continue with a version that is no longer current.
    mutating func keep(_ ids: [ReaderID], in previous: Lease) {
        for id in ids { entries[id]?.status = .previous(previous) }
    }

    /// Records that the readers need their own responses.
    mutating func setSeparate(_ ids: [ReaderID]) {
        for id in ids { entries[id]?.status = .separate }
    }

    /// Sets the source of the current version for the readers of that version whose source is not set yet.
    ///
    /// - Parameter evenKnown: Whether sources that are already set are also replaced.
    mutating func recordSource(_ source: OpenedResponse.Source?, evenKnown: Bool = false) {
        for id in Array(entries.keys) {
            guard let entry = entries[id], case .current = entry.status, entry.source == nil || evenKnown
            else { continue }
            entries[id]?.source = source
        }
    }

    /// Returns the readers that wait for response headers, oldest first, and records that they no longer wait.
    mutating func takeHeaderWaiters() -> [ReaderID] {
        let ids = entries.filter { $0.value.awaitsHead }.keys.sorted()
        for id in ids { entries[id]?.awaitsHead = false }
        return ids
    }
}

/// The version that a reader uses.
struct VersionInUse: Sendable {
    /// The lease on the version; `nil` if only the length is known.
    var lease: Lease?
    /// The length of the resource; `nil` if it is not known, or if the version is no longer current.
    var length: Int64?
    var source: OpenedResponse.Source
}

/// The result for a reader that needs the response headers of its version.
enum ReaderVersionResult: Sendable {
    case version(VersionInUse)
    /// The headers are not known yet. The reader is woken when a response has been evaluated.
    case wait
    /// The headers of this range cannot be fetched. The error is `nil` if the reason is not known.
    case failed(CacheError?, Range<Int64>)
    case closed
    /// The reader is closed.
    case gone
    /// The reader needs its own response.
    case separate
}
