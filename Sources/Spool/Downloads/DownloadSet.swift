public import Foundation
public import SpoolStorage

/// Media files that are kept offline together, under a name, until they are released.
public struct DownloadSet: Sendable, Identifiable {
    /// One of them.
    public struct Item: Sendable, Identifiable {
        /// Its name in the cache.
        public var key: CacheKey
        /// Scheme, host and path.
        public var address: String
        /// The URL from which the download resumes after a restart. `nil` if the URL is secret or comes from a resolver, or
        /// if a body of unknown length exceeded the limit. Then pass a source to ``Downloads/add(_:to:remembersQuery:)-(MediaSource,_,_)`` again.
        public var url: URL?
        /// Bytes that are stored.
        public var storedByteCount: Int64
        /// Number of bytes of the whole; nil as long as no response has told it.
        public var length: Int64?
        /// Whether it is being brought, or waits for its turn.
        public var isRunning: Bool
        /// Why it could not be brought the last time in this process.
        public var error: CacheError?

        /// Whether every byte is stored.
        public var isComplete: Bool { length.map { storedByteCount >= $0 } ?? false }
        /// Bytes that are not stored; nil as long as the length is not known.
        public var missingByteCount: Int64? { length.map { max(0, $0 - storedByteCount) } }
        /// Its key.
        public var id: CacheKey { key }
    }

    /// The set's name.
    public var name: String
    /// What it has, in the order in which it was added.
    public var items: [Item]

    /// Its name.
    public var id: String { name }
    /// Bytes that are stored.
    public var storedByteCount: Int64 { items.reduce(0) { $0.adding($1.storedByteCount) } }
    /// Bytes in all; nil as long as a length is not known.
    public var byteCount: Int64? {
        let lengths = items.compactMap(\.length)
        return lengths.count == items.count ? lengths.reduce(0) { $0.adding($1) } : nil
    }
    /// The part that is there, from 0 to 1, each item counting the same as long as a length is not known.
    public var fractionCompleted: Double {
        guard !items.isEmpty else { return 1 }
        if let byteCount, byteCount > 0 { return min(Double(storedByteCount) / Double(byteCount), 1) }
        let parts = items.map { item -> Double in
            guard let length = item.length, length > 0 else { return item.isComplete ? 1 : 0 }
            return min(Double(item.storedByteCount) / Double(length), 1)
        }
        return parts.reduce(0, +) / Double(items.count)
    }
    /// What is not there as a whole.
    public var missing: [Item] { items.filter { !$0.isComplete } }
    /// Whether all is there.
    public var isComplete: Bool { missing.isEmpty }
}

extension DownloadSet {
    /// The sets that the catalog knows, by name.
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
    /// - Parameters:
    ///   - record: What the catalog says.
    ///   - failure: How it failed the last time in this process.
    ///   - state: How far it has come that is being brought, or has just ended.
    init(_ record: DownloadRecord, _ failure: CacheError? = nil, _ state: PreloadState? = nil) {
        self.init(
            key: CacheKey(hash: record.key), address: record.url, url: record.source.flatMap { URL(string: $0) },
            storedByteCount: record.storedBytes, length: record.length, isRunning: false, error: failure)
        guard let state else { return }
        isRunning = !state.phase.isEnd
        // Whoever waited for the end may ask before it is noted with the failures.
        if let cause = state.error as? CacheError { error = cause }
        length = length ?? state.wantedByteCount
        // What has ended counts by the catalog alone: it may have been removed since.
        if isRunning { storedByteCount = max(storedByteCount, state.landedByteCount) }
    }
}
