public import Foundation

/// Keeps media in files of a directory, sparsely: what has not been fetched takes no room on the disk.
///
/// A cache's own is the folder `media` of its directory; one of an app's own may lie on another volume than the catalog.
public final class FileByteStore: ByteStore {
    private let folder: String
    private let fileSystem: any FileSystem

    /// Files in `directory`, which is made, readable by its owner only, when the first file is.
    public convenience init(directory: URL) { self.init(folder: directory.path, fileSystem: SystemFileSystem()) }

    package init(folder: String, fileSystem: any FileSystem) {
        self.folder = folder
        self.fileSystem = fileSystem
    }

    /// Where a file is; a folder for each of the first two digits keeps them short.
    func path(_ name: String) -> String { "\(folder)/\(name.prefix(2))/\(name).media" }

    /// Opens a file; fails for one that is no file, such as a link.
    public func open(_ name: String, isWritable: Bool) throws(CacheError) -> (any StoredFile)? {
        do {
            return try fileSystem.openFile(path(name), isWritable ? .readWrite : .read)
        } catch {
            guard error.posixCode == .ENOENT else { throw error }
            return nil
        }
    }

    /// Whether there is something with that name.
    public func contains(_ name: String) throws(CacheError) -> Bool { try fileSystem.attributes(path(name)) != nil }

    /// Makes a file, and the folders that it lies in, for its owner only.
    public func create(_ name: String) throws(CacheError) -> any StoredFile {
        do {
            return try fileSystem.openFile(path(name), .create)
        } catch {
            guard error.posixCode == .ENOENT else { throw error }
            try fileSystem.createDirectory("\(folder)/\(name.prefix(2))")
            return try fileSystem.openFile(path(name), .create)
        }
    }

    /// Removes a file.
    @discardableResult
    public func remove(_ name: String) throws(CacheError) -> Bool { try fileSystem.remove(path(name)) }

    /// Calls `body` with the names, sorted by their first two digits; passes over what others have put into the directory.
    public func forEachName(_ body: (String) throws -> Bool) throws {
        for shard in try fileSystem.list(folder).sorted() {
            // Whatever else somebody put here is not ours to look into, let alone to remove.
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

    /// The room on the volume.
    public func space() throws(CacheError) -> VolumeSpace? {
        // Of the nearest folder that is there: this one is made with its first file.
        var path = folder
        while true {
            if try fileSystem.attributes(path) != nil { return try fileSystem.volumeSpace(at: path) }
            let parent = (path as NSString).deletingLastPathComponent
            guard parent != path, !parent.isEmpty else { return try fileSystem.volumeSpace(at: path) }
            path = parent
        }
    }
}
