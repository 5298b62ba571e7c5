import Foundation
import SpoolStorage
import Synchronization

/// A file of a `MemoryFileSystem`, wherever its name has gone.
final class MemoryNode: Sendable {
    let bytes: Mutex<SparseBytes>
    let isLocked = Atomic(false)
    private let marks = Mutex<[ObjectIdentifier: FileMark]>([:])

    init(_ bytes: SparseBytes = SparseBytes()) { self.bytes = Mutex(bytes) }

    /// Puts a holder's mark in place of what it had, unless another's is in the way.
    func setMark(_ mark: FileMark, of holder: ObjectIdentifier) -> Bool {
        marks.withLock { marks in
            let others = marks.filter { $0.key != holder }.values
            switch mark {
            case .none: break
            case .shared: if others.contains(.exclusive) { return false }
            case .exclusive: if !others.isEmpty { return false }
            }
            marks[holder] = mark == .none ? nil : mark
            return true
        }
    }

    /// The same bytes in another file, which nobody has open.
    func copy() -> MemoryNode { MemoryNode(bytes.withLock { $0 }) }
}

/// Counts the files that are open.
final class OpenHandles: Sendable {
    let count = Mutex(0)
}

/// An open file of a `MemoryFileSystem`; it closes when it is released.
final class MemoryHandle: StoredFile {
    private let node: MemoryNode
    private let path: String
    private let isWritable: Bool
    private let holdsLock: Bool
    private let handles: OpenHandles

    init(_ node: MemoryNode, _ path: String, isWritable: Bool, holdsLock: Bool = false, _ handles: OpenHandles) {
        self.node = node
        self.path = path
        self.isWritable = isWritable
        self.holdsLock = holdsLock
        self.handles = handles
        handles.count.withLock { $0 += 1 }
    }

    deinit {
        _ = node.setMark(.none, of: ObjectIdentifier(self))  // never refused
        if holdsLock { node.isLocked.store(false, ordering: .relaxed) }
        handles.count.withLock { $0 -= 1 }
    }

    var fileDescriptor: Int32? { nil }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        node.bytes.withLock { $0.read(into: buffer, at: offset) }
    }

    func readNow(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        let count = node.bytes.withLock { $0.read(into: buffer, at: offset) }
        return count > 0 ? count : nil
    }

    func setMark(_ mark: FileMark) throws(CacheError) -> Bool { node.setMark(mark, of: ObjectIdentifier(self)) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        guard isWritable else {
            throw .system("is open to read only", path: path, errno: POSIXErrorCode.EBADF.rawValue)
        }
        guard offset >= 0, offset <= Block.offsetLimit - Int64(bytes.count) else {
            throw .system("can't be written there", path: path, errno: POSIXErrorCode.EFBIG.rawValue)
        }
        node.bytes.withLock { $0.write(bytes, at: offset) }
    }

    func punchHole(_ range: Range<Int64>) throws(CacheError) { node.bytes.withLock { $0.punchHole(range) } }

    func nextData(from offset: Int64) throws(CacheError) -> Range<Int64>? {
        node.bytes.withLock { $0.nextData(from: offset) }
    }

    func size() throws(CacheError) -> Int64 { node.bytes.withLock { $0.count } }

    func synchronize() throws(CacheError) {}
}
