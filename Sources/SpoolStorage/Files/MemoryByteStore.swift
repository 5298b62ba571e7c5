import Synchronization

/// Keeps media in memory, in pages of 64 KiB: as much as the cache's capacity allows, and until it is released.
///
/// For a ``/Spool/MediaCache/inMemory(upstream:configuration:clock:now:)``, which has its catalog there, too; in a cache with a
/// directory, what was stored is fetched anew after each start.
public final class MemoryByteStore: ByteStore {
    private let files = Mutex<[String: MemoryFile]>([:])

    /// An empty store.
    public init() {}

    /// Bytes of memory that the files take.
    public var byteCount: Int64 { files.withLock { files in files.values.reduce(0) { $0 + $1.allocatedByteCount } } }

    /// Opens a file, always to read and write.
    public func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)? {
        files.withLock { $0[name] }
    }

    /// Makes a file, of no bytes.
    public func create(_ name: String) throws(CacheError) -> any StoredFile {
        files.withLock { files in
            if let file = files[name] { return file }
            let file = MemoryFile()
            files[name] = file
            return file
        }
    }

    /// Removes a file; its memory is free when nobody has it open.
    @discardableResult
    public func remove(_ name: String) throws(CacheError) -> Bool {
        files.withLock { $0.removeValue(forKey: name) } != nil
    }

    /// Calls `body` with the names of the files that are there now.
    public func forEachName(_ body: (String) throws -> Bool) throws {
        for name in files.withLock({ Array($0.keys) }) {
            guard try body(name) else { return }
        }
    }

    /// Nil: the capacity says how much.
    public func space() throws(CacheError) -> VolumeSpace? { nil }
}
