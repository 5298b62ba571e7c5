import Foundation
package import SpoolStorage
import Synchronization

/// A file system in memory, a copy of which costs nothing: what a kill leaves, and what a bad disk makes of it.
///
/// Files may be looked into and damaged behind the cache's back. What `isReal` picks goes to the machine's own files:
/// SQLite opens its database by path. Folders are made in both. Passes `FileSystemContract`.
package final class MemoryFileSystem: FileSystem {
    private struct State {
        var files: [String: MemoryNode] = [:]
        var folders: Set<String> = ["/"]
    }

    /// How many files are open, wherever they stand now.
    package var openCount: Int { handles.count.withLock { $0 } }
    private let handles = OpenHandles()
    private let base = SystemFileSystem()
    private let isReal: @Sendable (String) -> Bool
    private let state: Mutex<State>

    /// An empty file system.
    ///
    /// - Parameter isReal: Which paths are the machine's own; none by default.
    package init(isReal: @escaping @Sendable (String) -> Bool = { _ in false }) {
        self.isReal = isReal
        self.state = Mutex(State())
    }

    private init(_ state: State, isReal: @escaping @Sendable (String) -> Bool) {
        self.isReal = isReal
        self.state = Mutex(state)
    }

    // MARK: - Behind the cache's back

    /// What a kill leaves at this moment, for a folder of another name: all files, no open ones, no locks.
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

    /// Looks into a file, or changes it; nil if there is none.
    package func with<R>(_ path: String, _ body: (inout SparseBytes) -> R) -> R? {
        state.withLock { $0.files[path] }?.bytes.withLock { body(&$0) }
    }

    /// Deletes a folder with all that is in it; who has a file of it open keeps that.
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
        if let obstacle { throw .system("is no folder", path: obstacle, errno: POSIXErrorCode.ENOTDIR.rawValue) }
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
                "could not be asked for the room on its volume", path: path, errno: POSIXErrorCode.ENOENT.rawValue)
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
            throw CacheError(.invalidArgument, "“\(path)” is no path.")
        }
    }

    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }
}
