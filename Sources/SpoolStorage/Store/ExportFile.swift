import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that is written beside the one that it is to replace, under a name that nobody else has; errors name the file
/// that was asked for.
final class ExportFile: Sendable {
    private let path: String
    private let partial: String
    private let descriptor: Int32

    /// Creates the file beside `path`.
    ///
    /// - Throws: ``CacheError`` with code `storage`.
    init(replacing path: String) throws {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        if isThere, status.st_mode & S_IFMT != S_IFREG {
            throw CacheError(.storage, "“\(path)” can't be replaced: it is no file")
        }
        let folder = (path as NSString).deletingLastPathComponent
        let name = ".spool-\(GenerationIdentifier().hex).partial"
        let partial = folder.isEmpty ? name : "\(folder)/\(name)"
        try checkPath(path)
        // Never somebody else's, never through a link; readable as the person's other files are.
        let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        guard descriptor >= 0 else { throw CacheError.system("could not be created", path: path, errno: errno) }
        if isThere, fchmod(descriptor, status.st_mode & 0o7777) != 0 {
            let code = errno
            close(descriptor)
            unlink(partial)
            throw CacheError.system("could not be replaced by a file of its mode", path: path, errno: code)
        }
        self.path = path
        self.partial = partial
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Writes what comes next.
    func append(_ bytes: Data) throws {
        try bytes.withUnsafeBytes { bytes in
            var count = 0
            while count < bytes.count, let base = bytes.baseAddress {
                let written = write(descriptor, base + count, bytes.count - count)
                if written > 0 {
                    count += written
                } else if errno != EINTR {
                    throw CacheError.system("could not be written", path: path, errno: errno)
                }
            }
        }
    }

    /// Puts the file in its place.
    func finish() throws {
        guard rename(partial, path) == 0 else {
            throw CacheError.system("could not be put in its place", path: path, errno: errno)
        }
    }

    /// Removes what was written.
    func discard() {
        // If it can't be removed there is nothing more to do: the disk that refuses that has refused to write it, too.
        unlink(partial)
    }
}
