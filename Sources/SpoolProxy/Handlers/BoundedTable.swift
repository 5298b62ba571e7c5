#if Proxy
/// A table of limited size, in entries and in bytes, that forgets the oldest entries when it is full.
///
/// It has two halves. When the recent half is full, it replaces the older half, whose entries are forgotten. An entry
/// is remembered at least until the entries recorded after it reach half of either limit.
struct BoundedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        var value: Value
        /// The size of the key and the value, in bytes.
        var bytes: UInt32
    }

    private var recent: [Key: Entry] = [:]
    private var older: [Key: Entry] = [:]
    private var recentBytes = 0
    /// Whether entries were forgotten because the table was full.
    private(set) var hasForgotten = false
    private let halfCount: Int
    private let halfBytes: Int
    private let entryBytes: Int

    /// Creates an empty table.
    ///
    /// - Parameters:
    ///   - count: The maximum number of entries in both halves.
    ///   - bytes: The maximum number of bytes in both halves, as counted by ``record(_:for:bytes:)``. The default is 4
    ///     MiB.
    ///   - entryBytes: The maximum size of one entry, in bytes. The default is the maximum size of a URL in a request.
    init(count: Int, bytes: Int = 4 << 20, entryBytes: Int = 32 << 10) {
        halfCount = max(1, count / 2)
        halfBytes = bytes / 2
        self.entryBytes = min(entryBytes, halfBytes)
    }

    /// Whether no value has been recorded.
    var isEmpty: Bool { recent.isEmpty }

    /// The last recorded value for a key, or `nil` if none is remembered.
    subscript(key: Key) -> Value? { (recent[key] ?? older[key])?.value }

    /// Records a value for a key, and replaces the previous one. An entry that exceeds the maximum size is not
    /// recorded.
    ///
    /// - Parameter bytes: The size of the key and the value in memory, in bytes, without the table's overhead.
    mutating func record(_ value: Value, for key: Key, bytes: Int) {
        // An entry that is recorded again is counted once, with its new size.
        if let previous = recent.removeValue(forKey: key) { recentBytes -= Int(previous.bytes) }
        older[key] = nil
        guard bytes <= entryBytes else { return }
        if recent.count >= halfCount || recentBytes + bytes > halfBytes {
            hasForgotten = hasForgotten || !older.isEmpty
            (older, recent, recentBytes) = (recent, [:], 0)
        }
        recent[key] = Entry(value: value, bytes: UInt32(bytes))
        recentBytes += bytes
    }
}
#endif
