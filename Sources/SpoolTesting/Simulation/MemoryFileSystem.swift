import ByteRanges
import Foundation
package import SpoolStorage
import Synchronization

/// An in-memory file system that can be copied cheaply, to simulate a kill or a damaged disk.
///
/// A test can read and damage files without the cache's knowledge. Paths that `isReal` selects refer to real files on
/// the machine, because SQLite opens its database by path. Folders are created in both file systems. This type passes
/// `FileSystemContract`.
package final class MemoryFileSystem: FileSystem {
    private struct State {
        var files: [String: MemoryNode] = [:]
        var folders: Set<String> = ["/"]
    }

    /// The number of open files, in all copies.
    package var openCount: Int { handles.count.withLock { $0 } }
    private let handles = OpenHandles()
    private let base = SystemFileSystem()
    private let isReal: @Sendable (String) -> Bool
    private let state: Mutex<State>

    /// Creates an empty file system.
    ///
    /// - Parameter isReal: A function that selects the paths of real files on the machine. By default, it does not
    ///   select any.
    package init(isReal: @escaping @Sendable (String) -> Bool = { _ in false }) {
        self.isReal = isReal
        self.state = Mutex(State())
    }

    private init(_ state: State, isReal: @escaping @Sendable (String) -> Bool) {
        self.isReal = isReal
        self.state = Mutex(state)
    }

    // MARK: - Changes without the cache's knowledge

    /// Returns a copy of the current state, as a kill would leave it, with `folder` renamed to `target`. The copy
    /// contains all files, but none of them is open or locked.
    package func copy(renaming folder: String, to target: String) -> MemoryFileSystem {
        let copied = state.withLock { state in
            func renamed(_ path: String) -> String {
                path == folder || path.hasPrefix(folder + "/") ? target + path.dropFirst(folder.count) : path
            }
            var copy = State()
            for (path, node) in state.files { copy.files[renamed(path)] = node.copy() }
            copy.folders = Set(state.folders.map(renamed))
            return copy
        }
        return MemoryFileSystem(copied, isReal: isReal)
    }

    /// The paths of all files in memory, sorted.
    package var paths: [String] { state.withLock { $0.files.keys.sorted() } }

    /// Calls `body` with the bytes of a file, to read or change them. Returns `nil` if the file does not exist.
    package func with<R>(_ path: String, _ body: (inout SparseBytes) -> R) -> R? {
        state.withLock { $0.files[path] }?.bytes.withLock { body(&$0) }
    }

    /// Deletes a folder with its contents. Open files remain usable.
    package func delete(_ folder: String) {
        state.withLock { state in
            func isInside(_ path: String) -> Bool { path == folder || path.hasPrefix(folder + "/") }
            state.files = state.files.filter { !isInside($0.key) }
            state.folders = state.folders.filter { !isInside($0) }
        }
    }

    // MARK: - FileSystem

    package func createDirectory(_ path: String) throws(CacheError) {
        try check(path)
        var folders: [String] = []
        var rest = Substring(path)
        while rest.count > 1 {
            folders.append(String(rest))
            rest = rest.prefix(upTo: rest.lastIndex(of: "/") ?? rest.startIndex)
        }
        let obstacle = state.withLock { state -> String? in
            if let file = folders.first(where: { state.files[$0] != nil }) { return file }
            state.folders.formUnion(folders)
            return nil
        }
        if let obstacle { throw .system("is not a folder", path: obstacle, errno: POSIXErrorCode.ENOTDIR.rawValue) }
        if isReal(path) { try base.createDirectory(path) }
    }

    package func protectDirectory(_ path: String) -> [CacheError] { [] }

    package func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile {
        try check(path)
        if isReal(path) { return try base.openFile(path, access) }
        return MemoryHandle(try node(path, access), path, isWritable: access != .read, handles)
    }

    package func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)? {
        try check(path)
        let node = try node(path, .create)
        guard node.isLocked.exchange(true, ordering: .relaxed) == false else { return nil }
        return MemoryHandle(node, path, isWritable: true, holdsLock: true, handles)
    }

    private func node(_ path: String, _ access: FileAccess) throws(CacheError) -> MemoryNode {
        let node = state.withLock { state -> MemoryNode? in
            if let node = state.files[path] { return node }
            guard access == .create, state.folders.contains(Self.folder(of: path)) else { return nil }
            let node = MemoryNode()
            state.files[path] = node
            return node
        }
        guard let node else { throw .system("can't be opened", path: path, errno: POSIXErrorCode.ENOENT.rawValue) }
        return node
    }

    @discardableResult
    package func remove(_ path: String) throws(CacheError) -> Bool {
        try check(path)
        if isReal(path) { return try base.remove(path) }
        return state.withLock { $0.files.removeValue(forKey: path) } != nil
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        if isReal(path) { return try base.rename(path, to: newPath) }
        let isMoved = state.withLock { state in
            guard let node = state.files.removeValue(forKey: path) else { return false }
            state.files[newPath] = node
            return true
        }
        if !isMoved { throw .system("can't be renamed", path: path, errno: POSIXErrorCode.ENOENT.rawValue) }
    }

    package func list(_ path: String) throws(CacheError) -> [String] {
        state.withLock { state in
            let all = Array(state.files.keys) + state.folders
            return all.filter { $0 != path && Self.folder(of: $0) == path }.map { String($0.dropFirst(path.count + 1)) }
                .sorted()
        }
    }

    package func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace {
        guard state.withLock({ $0.folders.contains(path) }) else {
            throw .system(
                "does not exist", path: path, errno: POSIXErrorCode.ENOENT.rawValue)
        }
        return VolumeSpace(size: 1 << 40, free: 1 << 39)
    }

    package func attributes(_ path: String) throws(CacheError) -> FileAttributes? {
        if isReal(path) { return try base.attributes(path) }
        return state.withLock { state in
            let isDirectory = state.folders.contains(path)
            guard isDirectory || state.files[path] != nil else { return nil }
            return FileAttributes(
                owner: getuid(), permissions: isDirectory ? 0o700 : 0o600, isDirectory: isDirectory)
        }
    }

    private func check(_ path: String) throws(CacheError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw CacheError(.invalidArgument, "“\(path)” is not a valid path")
        }
    }

    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }
}

/// A file in a `MemoryFileSystem`, independent of its name.
final class MemoryNode: Sendable {
    let bytes: Mutex<SparseBytes>
    let isLocked = Atomic(false)
    private let marks = Mutex<[ObjectIdentifier: FileLock]>([:])

    init(_ bytes: SparseBytes = SparseBytes()) { self.bytes = Mutex(bytes) }

    /// Replaces a holder's lock. If the new lock conflicts with another holder's lock, returns `false` and changes
    /// nothing.
    func lock(_ mark: FileLock, of holder: ObjectIdentifier) -> Bool {
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

    /// Returns a new file with the same bytes, which is not open.
    func copy() -> MemoryNode { MemoryNode(bytes.withLock { $0 }) }
}

/// A counter of open files.
final class OpenHandles: Sendable {
    let count = Mutex(0)
}

/// An open file in a `MemoryFileSystem`. The file is closed when this object is released.
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
        _ = node.lock(.none, of: ObjectIdentifier(self))  // Unlocking never fails.
        if holdsLock { node.isLocked.store(false, ordering: .relaxed) }
        handles.count.withLock { $0 -= 1 }
    }

    var fileDescriptor: Int32? { nil }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        node.bytes.withLock { $0.read(into: buffer, at: offset) }
    }

    func readWithoutBlocking(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        let count = node.bytes.withLock { $0.read(into: buffer, at: offset) }
        return count > 0 ? count : nil
    }

    func lock(_ mark: FileLock) throws(CacheError) -> Bool { node.lock(mark, of: ObjectIdentifier(self)) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        guard isWritable else {
            throw .system("is open for reading only", path: path, errno: POSIXErrorCode.EBADF.rawValue)
        }
        guard offset >= 0, offset <= Block.offsetLimit - Int64(bytes.count) else {
            throw .system("can't be written at offset \(offset)", path: path, errno: POSIXErrorCode.EFBIG.rawValue)
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
