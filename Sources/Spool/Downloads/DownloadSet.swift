import ByteRanges
public import Foundation
public import SpoolStorage

/// A named set of resources that are stored for offline playback until the set is released.
public struct DownloadSet: Sendable, Identifiable {
    /// A resource in a set.
    public struct Item: Sendable, Identifiable {
        /// The cache key of the resource.
        public var key: CacheKey
        /// The scheme, host and path of the URL.
        public var redactedURL: String
        /// The URL from which the download resumes after a restart.
        ///
        /// The value is `nil` if the source has header fields or a resolver, or if its URL has a query that was not
        /// recorded. It is also `nil` if a body of unknown length exceeded the available space. In these cases, pass a
        /// source to ``Downloads/add(_:to:remembersQuery:)-(MediaSource,_,_)`` again.
        public var url: URL?
        /// The number of stored bytes.
        public var storedByteCount: Int64
        /// The length in bytes, or `nil` until a response includes it.
        public var length: Int64?
        /// Whether the item is being downloaded or is waiting to be downloaded.
        public var isRunning: Bool
        /// The error from the last download in this process, or `nil` if there was no error.
        public var error: CacheError?

        /// Whether all bytes are stored.
        public var isComplete: Bool { length.map { storedByteCount >= $0 } ?? false }
        /// The number of bytes that are not stored, or `nil` if the length is unknown.
        public var missingByteCount: Int64? { length.map { max(0, $0 - storedByteCount) } }
        /// The identifier of the item, which is its cache key.
        public var id: CacheKey { key }
    }

    /// The name of the set.
    public var name: String
    /// The items, in the order in which they were added.
    public var items: [Item]

    /// The identifier of the set, which is its name.
    public var id: String { name }
    /// The total number of stored bytes of all items.
    public var storedByteCount: Int64 { items.reduce(0) { $0.adding($1.storedByteCount) } }
    /// The total length of all items in bytes, or `nil` if a length is unknown.
    public var byteCount: Int64? {
        let lengths = items.compactMap(\.length)
        return lengths.count == items.count ? lengths.reduce(0) { $0.adding($1) } : nil
    }
    /// The stored fraction, from 0 to 1. If a length is unknown, all items have the same weight.
    public var fractionCompleted: Double {
        guard !items.isEmpty else { return 1 }
        if let byteCount, byteCount > 0 { return min(Double(storedByteCount) / Double(byteCount), 1) }
        let parts = items.map { item -> Double in
            guard let length = item.length, length > 0 else { return item.isComplete ? 1 : 0 }
            return min(Double(item.storedByteCount) / Double(length), 1)
        }
        return parts.reduce(0, +) / Double(items.count)
    }
    /// The items that are not completely stored.
    public var missing: [Item] { items.filter { !$0.isComplete } }
    /// Whether all items are completely stored.
    public var isComplete: Bool { missing.isEmpty }
}

extension DownloadSet {
    /// Returns the sets that the catalog's records belong to. The records must be sorted by the name of their set.
    static func sets(of records: [DownloadRecord], _ item: (DownloadRecord) -> Item) -> [DownloadSet] {
        var sets: [DownloadSet] = []
        for record in records {
            if sets.last?.name != record.set { sets.append(DownloadSet(name: record.set, items: [])) }
            sets[sets.count - 1].items.append(item(record))
        }
        return sets
    }
}

extension DownloadSet.Item {
    /// Creates an item.
    ///
    /// - Parameters:
    ///   - record: The record in the catalog.
    ///   - failure: The error from the last download in this process, if it failed.
    ///   - state: The state of the download that is running or has just ended.
    init(_ record: DownloadRecord, _ failure: CacheError? = nil, _ state: PreloadState? = nil) {
        self.init(
            key: CacheKey(hash: record.key), redactedURL: record.url, url: record.source.flatMap { URL(string: $0) },
            storedByteCount: record.storedBytes, length: record.length, isRunning: false, error: failure)
        guard let state else { return }
        isRunning = !state.phase.isFinal
        // A caller that waited for the end of the download may read the item before the error is recorded.
        if let cause = state.error as? CacheError { error = cause }
        // The length of a response that was rejected, such as an empty one, is not that of the media.
        if state.phase != .failed { length = length ?? state.targetByteCount }
        // After the download has ended, only the catalog is used, because bytes may have been removed since.
        if isRunning { storedByteCount = max(storedByteCount, state.storedByteCount) }
    }
}
