import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The machine's own files.
package struct SystemFileSystem: FileSystem {
    private let protection: FileProtection

    /// Creates a file system that sets these attributes, by default those of the platform.
    package init(protection: FileProtection = .system) { self.protection = protection }

    package func createDirectory(_ path: String) throws(CacheError) {
        try checkPath(path)
        if mkdir(path, 0o700) == 0 { return }
        switch errno {
        case EEXIST where isDirectory(path): return
        case EEXIST: throw .system("could not be created as a directory", path: path, errno: ENOTDIR)
        case ENOENT:
            let parent = (path as NSString).deletingLastPathComponent
            guard !parent.isEmpty, parent != path else {
                throw .system("could not be created", path: path, errno: ENOENT)
            }
            try createDirectory(parent)
            // Another process may have been faster.
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                throw .system("could not be created", path: path, errno: errno)
            }
        case let code: throw .system("could not be created", path: path, errno: code)
        }
    }

    package func protectDirectory(_ path: String) -> [CacheError] { protection.protectDirectory(path) }

    package func openFile(_ path: String, _ access: FileAccess) throws(CacheError) -> any StoredFile {
        try SystemFile(path: path, access: access, protection: protection)
    }

    package func lockFile(_ path: String) throws(CacheError) -> (any StoredFile)? {
        let file = try SystemFile(path: path, access: .create, protection: protection)
        return try file.setMark(.exclusive) ? file : nil
    }

    package func attributes(_ path: String) throws(CacheError) -> FileAttributes? {
        try checkPath(path)
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .system("could not be looked at", path: path, errno: errno)
        }
        return FileAttributes(
            owner: status.st_uid, permissions: UInt16(status.st_mode & 0o7777),
            isDirectory: status.st_mode & S_IFMT == S_IFDIR)
    }

    @discardableResult
    package func remove(_ path: String) throws(CacheError) -> Bool {
        try checkPath(path)
        if unlink(path) == 0 { return true }
        guard errno == ENOENT else { throw .system("could not be removed", path: path, errno: errno) }
        return false
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try checkPath(path)
        try checkPath(newPath)
        guard renameFile(path, newPath) == 0 else {
            throw .system("could not be renamed to “\(newPath)”", path: path, errno: errno)
        }
    }

    package func list(_ path: String) throws(CacheError) -> [String] {
        try checkPath(path)
        guard let directory = opendir(path) else {
            if errno == ENOENT { return [] }
            throw .system("could not be listed", path: path, errno: errno)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                guard errno == 0 else { throw .system("could not be listed", path: path, errno: errno) }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
    }

    package func volumeSpace(at path: String) throws(CacheError) -> VolumeSpace {
        try checkPath(path)
        var status = statvfs()
        while statvfs(path, &status) != 0 {
            guard errno == EINTR else {
                throw .system("could not be asked for the room on its volume", path: path, errno: errno)
            }
        }
        let (count, free) = (Int64(clamping: status.f_blocks), Int64(clamping: status.f_bavail))
        func bytes(_ blocks: Int64) -> Int64 {
            let (bytes, overflow) = blocks.multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
            return overflow ? .max : bytes
        }
        return VolumeSpace(size: bytes(count), free: bytes(free))
    }

    private func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}

/// The C call, whose name a method of the same name hides.
private func renameFile(_ path: String, _ newPath: String) -> Int32 { rename(path, newPath) }

/// A C call would take the path up to a NUL as another path.
func checkPath(_ path: String) throws(CacheError) {
    guard !path.isEmpty, !path.utf8.contains(0) else {
        throw CacheError(.invalidArgument, "“\(path)” can't be a path: it is empty or holds a NUL")
    }
}
