import Foundation
import GRDBSQLite
import Synchronization

/// Faults in SQLite's disk calls, for the databases in one directory.
final class CatalogFaults: Sendable {
    /// A disk call.
    enum Call: String, Sendable {
        case open, read, write, sync
        /// An attempt to acquire the write lock, which another program may hold.
        case lock
    }

    private static let folders = Mutex<[String: CatalogFaults]>([:])
    private let folder: String
    private let decide: @Sendable (Call) -> Int32?
    /// The end of the bytes written to the write-ahead log since its last restart, and the end of the synchronized
    /// bytes.
    private let journalEnds = Mutex<(written: Int64, synchronized: Int64)>((0, 0))

    /// Creates faults for databases that are opened in `folder` from now on, until ``end()`` is called or other faults
    /// replace these.
    ///
    /// - Parameter decide: A closure that returns the SQLite code with which a call fails; `nil` if the call does not
    ///   fail.
    init(_ folder: String, _ decide: @escaping @Sendable (Call) -> Int32?) {
        self.folder = folder
        self.decide = decide
        FaultyVFS.register()
        Self.folders.withLock { $0[folder] = self }
    }

    func end() { Self.folders.withLock { if $0[folder] === self { $0[folder] = nil } } }

    /// The range of the write-ahead log that a power loss may remove. The database relies on the bytes before this
    /// range.
    var unsynchronizedJournal: Range<Int64> { journalEnds.withLock { $0.synchronized..<$0.written } }

    fileprivate func recordJournal(write: Range<Int64>) {
        journalEnds.withLock { ends in
            if write.lowerBound == 0 { ends = (0, 0) }
            ends.written = max(ends.written, write.upperBound)
        }
    }

    fileprivate func recordJournalSync() { journalEnds.withLock { $0.synchronized = $0.written } }

    fileprivate static func faults(of path: String) -> CatalogFaults? {
        folders.withLock { $0[(path as NSString).deletingLastPathComponent] }
    }

    fileprivate func code(_ call: Call) -> Int32? { decide(call) }
}

/// A file layer for SQLite (https://www.sqlite.org/vfs.html) that adds faults to the real calls.
///
/// It is the default file layer in the process after ``register()`` is called. Databases in directories without faults
/// are not affected.
private enum FaultyVFS {
    /// The data that precedes the real file in the memory allocated by SQLite for a file.
    struct Head {
        var file: sqlite3_file
        var faults: Unmanaged<CatalogFaults>?
        var isJournal: Bool
    }

    typealias File = UnsafeMutablePointer<sqlite3_file>

    // These properties are set up once, before SQLite uses them, and are never changed or freed.
    nonisolated(unsafe) static let base = sqlite3_vfs_find(nil)!  // SQLite always has a default file layer.
    nonisolated(unsafe) static let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    nonisolated(unsafe) static let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    static let headSize = 32
    /// The threads whose last attempt to lock failed because of a fault. SQLite sleeps on such a thread before it
    /// retries.
    static let refusedThreads = Mutex<Set<pthread_t>>([])

    static func register() { _ = registration }

    private static let registration: Void = {
        methods.initialize(to: makeMethods())
        vfs.initialize(to: base.pointee)
        vfs.pointee.pNext = nil
        vfs.pointee.zName = UnsafePointer(strdup("faulty"))
        vfs.pointee.szOsFile += Int32(headSize)
        vfs.pointee.xOpen = { _, name, file, flags, outFlags in FaultyVFS.open(name, file, flags, outFlags) }
        // After a lock fault, a simulated run must not wait in real time. Other tests in the process must.
        vfs.pointee.xSleep = { _, microseconds in
            refusedThreads.withLock { $0.remove(pthread_self()) } == nil
                ? base.pointee.xSleep(base, microseconds) : microseconds
        }
        sqlite3_vfs_register(vfs, 1)
    }()

    private static func open(
        _ name: UnsafePointer<CChar>?, _ file: File?, _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        guard let file else { return SQLITE_MISUSE }
        // SQLite does not close a file without methods.
        file.pointee.pMethods = nil
        let faults = name.flatMap { CatalogFaults.faults(of: String(cString: $0)) }
        if let code = faults?.code(.open) { return code }
        let code = base.pointee.xOpen(base, name, real(file), flags, outFlags)
        guard code == SQLITE_OK else { return code }
        let head = UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
        head.pointee.faults = faults.map { .passRetained($0) }
        head.pointee.isJournal = flags & SQLITE_OPEN_WAL != 0
        file.pointee.pMethods = UnsafePointer(methods)
        return SQLITE_OK
    }

    static func real(_ file: File?) -> File {
        UnsafeMutableRawPointer(file!).advanced(by: headSize).assumingMemoryBound(to: sqlite3_file.self)  // Never null.
    }

    static func call(_ file: File?) -> sqlite3_io_methods { real(file).pointee.pMethods.pointee }

    static func faults(_ file: File?) -> Unmanaged<CatalogFaults>? {
        UnsafeMutableRawPointer(file!).assumingMemoryBound(to: Head.self).pointee.faults  // Never null.
    }

    /// Returns the faults for a file if it is a write-ahead log; otherwise `nil`.
    static func journal(_ file: File?) -> CatalogFaults? {
        let head = UnsafeMutableRawPointer(file!).assumingMemoryBound(to: Head.self)  // Never null.
        return head.pointee.isJournal ? head.pointee.faults?.takeUnretainedValue() : nil
    }

    static func fault(_ call: CatalogFaults.Call, _ file: File?) -> Int32? {
        faults(file)?.takeUnretainedValue().code(call)
    }

    private static func makeMethods() -> sqlite3_io_methods {
        var methods = sqlite3_io_methods()
        methods.iVersion = 2
        methods.xClose = { file in
            FaultyVFS.faults(file)?.release()
            return FaultyVFS.call(file).xClose(FaultyVFS.real(file))
        }
        methods.xRead = { FaultyVFS.fault(.read, $0) ?? FaultyVFS.call($0).xRead(FaultyVFS.real($0), $1, $2, $3) }
        methods.xWrite = { file, bytes, count, offset in
            if let code = FaultyVFS.fault(.write, file) { return code }
            let code = FaultyVFS.call(file).xWrite(FaultyVFS.real(file), bytes, count, offset)
            if code == SQLITE_OK { FaultyVFS.journal(file)?.recordJournal(write: offset..<offset + Int64(count)) }
            return code
        }
        methods.xTruncate = { FaultyVFS.fault(.write, $0) ?? FaultyVFS.call($0).xTruncate(FaultyVFS.real($0), $1) }
        methods.xSync = { file, flags in
            if let code = FaultyVFS.fault(.sync, file) { return code }
            let code = FaultyVFS.call(file).xSync(FaultyVFS.real(file), flags)
            if code == SQLITE_OK { FaultyVFS.journal(file)?.recordJournalSync() }
            return code
        }
        methods.xFileSize = { FaultyVFS.call($0).xFileSize(FaultyVFS.real($0), $1) }
        methods.xLock = { FaultyVFS.call($0).xLock(FaultyVFS.real($0), $1) }
        methods.xUnlock = { FaultyVFS.call($0).xUnlock(FaultyVFS.real($0), $1) }
        methods.xCheckReservedLock = { FaultyVFS.call($0).xCheckReservedLock(FaultyVFS.real($0), $1) }
        methods.xFileControl = { FaultyVFS.call($0).xFileControl(FaultyVFS.real($0), $1, $2) }
        methods.xSectorSize = { FaultyVFS.call($0).xSectorSize(FaultyVFS.real($0)) }
        methods.xDeviceCharacteristics = { FaultyVFS.call($0).xDeviceCharacteristics(FaultyVFS.real($0)) }
        methods.xShmMap = { FaultyVFS.call($0).xShmMap(FaultyVFS.real($0), $1, $2, $3, $4) }
        methods.xShmLock = { file, offset, count, flags in
            let wantsToWrite = offset == 0 && flags & SQLITE_SHM_EXCLUSIVE != 0 && flags & SQLITE_SHM_LOCK != 0
            if wantsToWrite, let code = FaultyVFS.fault(.lock, file) {
                _ = FaultyVFS.refusedThreads.withLock { $0.insert(pthread_self()) }
                return code
            }
            return FaultyVFS.call(file).xShmLock(FaultyVFS.real(file), offset, count, flags)
        }
        methods.xShmBarrier = { FaultyVFS.call($0).xShmBarrier(FaultyVFS.real($0)) }
        methods.xShmUnmap = { FaultyVFS.call($0).xShmUnmap(FaultyVFS.real($0), $1) }
        return methods
    }
}
