public import Foundation
import Synchronization

/// A byte store that uses sparse files in a directory. Bytes that have not been fetched do not use space on the disk.
///
/// The default store uses the folder `media` in the cache's directory. Another directory may be on a different volume
/// than the catalog.
public final class FileByteStore: ByteStore {
    private let folder: String
    private let fileSystem: any FileSystem

    /// Creates a store of files in `directory`, which is created with the first file and is readable only by its owner.
    public convenience init(directory: URL) { self.init(folder: directory.path, fileSystem: SystemFileSystem()) }

    package init(folder: String, fileSystem: any FileSystem) {
        self.folder = folder
        self.fileSystem = fileSystem
    }

    /// Returns the path of a file. Files are in folders named after the first two digits of their names, so that
    /// folders stay small.
    func path(_ name: String) -> String { "\(shard(of: name))/\(name).media" }

    private func shard(of name: String) -> String { "\(folder)/\(name.prefix(2))" }

    /// Waits until the names of new files have reached the device. The files themselves are synchronized separately.
    func synchronizeFolders(of names: [String]) throws(CacheError) {
        guard !names.isEmpty else { return }
        for shard in Set(names.map(shard)).sorted() { try fileSystem.synchronizeDirectory(shard) }
        try fileSystem.synchronizeDirectory(folder)
    }

    /// Opens a file. Throws an error if it is not a regular file, for example if it is a link.
    public func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)? {
        do {
            return try fileSystem.openFile(path(name), isWritable ? .readWrite : .read)
        } catch {
            guard error.posixCode == .ENOENT else { throw error }
            return nil
        }
    }

    /// Returns whether a file with this name exists.
    public func contains(_ name: String) throws(CacheError) -> Bool { try fileSystem.attributes(path(name)) != nil }

    /// Creates a file and its folders, readable only by their owner.
    public func create(_ name: String) throws(CacheError) -> any StoredFile {
        do {
            return try fileSystem.openFile(path(name), .create)
        } catch {
            guard error.posixCode == .ENOENT else { throw error }
            try fileSystem.createDirectory(shard(of: name))
            return try fileSystem.openFile(path(name), .create)
        }
    }

    /// Removes a file.
    @discardableResult
    public func remove(_ name: String) throws(CacheError) -> Bool { try fileSystem.remove(path(name)) }

    /// Calls `body` with each name, in the order of their first two digits. Files in the directory that belong to other
    /// programs are skipped.
    public func forEachName(_ body: (String) throws -> Bool) throws {
        for shard in try fileSystem.list(folder).sorted() {
            // Folders that belong to other programs are neither read nor removed.
            guard shard.utf8.count == 2, shard.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
            else { continue }
            let names: [String]
            do {
                names = try fileSystem.list("\(folder)/\(shard)")
            } catch {
                guard error.posixCode == .ENOTDIR else { throw error }
                continue
            }
            for name in names where name.hasSuffix(".media") {
                guard try body(String(name.dropLast(".media".count))) else { return }
            }
        }
    }

    /// Returns the space on the volume.
    public func volumeSpace() throws(CacheError) -> VolumeSpace? {
        // The nearest existing folder is used, because the store's folder is not created before its first file.
        var path = folder
        while true {
            if try fileSystem.attributes(path) != nil { return try fileSystem.volumeSpace(at: path) }
            let parent = (path as NSString).deletingLastPathComponent
            guard parent != path, !parent.isEmpty else { return try fileSystem.volumeSpace(at: path) }
            path = parent
        }
    }
}

/// A byte store that uses memory, in pages of 64 KiB, up to the cache's capacity.
///
/// It is intended for a cache in memory, whose catalog is also in memory. If it is used in a cache with a directory,
/// all media is fetched again after each start.
public final class MemoryByteStore: ByteStore {
    private let files = Mutex<[String: MemoryFile]>([:])

    /// Creates an empty store.
    public init() {}

    /// The memory that the files use, in bytes.
    public var byteCount: Int64 { files.withLock { files in files.values.reduce(0) { $0 + $1.allocatedByteCount } } }

    /// Opens a file for reading and writing.
    public func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)? {
        files.withLock { $0[name] }
    }

    /// Returns the file with this name, which is created if it does not exist.
    public func create(_ name: String) throws(CacheError) -> any StoredFile {
        files.withLock { files in
            if let file = files[name] { return file }
            let file = MemoryFile()
            files[name] = file
            return file
        }
    }

    /// Removes a file. Its memory is freed when it is no longer open.
    @discardableResult
    public func remove(_ name: String) throws(CacheError) -> Bool {
        files.withLock { $0.removeValue(forKey: name) } != nil
    }

    /// Calls `body` with the names of the current files.
    public func forEachName(_ body: (String) throws -> Bool) throws {
        for name in files.withLock({ Array($0.keys) }) {
            guard try body(name) else { return }
        }
    }

    /// Returns `nil`, because only the capacity limits the size.
    public func volumeSpace() throws(CacheError) -> VolumeSpace? { nil }
}
