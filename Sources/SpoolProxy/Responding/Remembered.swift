#if Proxy
/// A table of limited size, in entries and in bytes, that forgets the oldest entries when it is full.
///
/// It has two halves: when the recent one is full, it takes the place of the older one, whose entries are forgotten. An entry
/// is known until as many entries, or bytes, as one half may have were noted after it.
struct Remembered<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var recent: [Key: Value] = [:]
    private var older: [Key: Value] = [:]
    private var recentBytes = 0
    private let halfCount: Int
    private let halfBytes: Int

    /// The most bytes of one entry: a request head has no longer address by default.
    private static var entryBytes: Int { 32 << 10 }

    /// Creates an empty table.
    ///
    /// - Parameters:
    ///   - count: The most entries in both halves.
    ///   - bytes: The most bytes of both halves, as counted by ``note(_:for:bytes:)``. The default is 4 MiB.
    init(count: Int, bytes: Int = 4 << 20) {
        halfCount = max(1, count / 2)
        halfBytes = bytes / 2
    }

    /// The value that was noted last for a key; `nil` if none is remembered.
    subscript(key: Key) -> Value? { recent[key] ?? older[key] }

    /// Remembers a value. An entry of more than 32 KiB is not remembered.
    ///
    /// - Parameter bytes: How many bytes of memory the key and the value take, without the table's own.
    mutating func note(_ value: Value, for key: Key, bytes: Int) {
        guard bytes <= min(Self.entryBytes, halfBytes) else { return }
        let isKnown = recent[key] != nil
        if !isKnown, recent.count >= halfCount || recentBytes + bytes > halfBytes {
            (older, recent, recentBytes) = (recent, [:], 0)
        }
        recent[key] = value
        // One that is noted again counts once.
        if !isKnown { recentBytes += bytes }
    }
}
#endif
