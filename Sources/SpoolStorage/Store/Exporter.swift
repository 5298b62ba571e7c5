import ByteRanges
import Foundation
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A value type that exports complete resources from a store to files.
struct Exporter: Sendable {
    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Copies a complete resource into a file. Every byte is checked as it is copied.
    func export(_ key: CacheKey, to file: URL) async throws {
        let (lease, length) = try await leaseComplete(key)
        defer { lease.end() }
        let target = try await store.executor.run(in: .maintenance) { try ExportFile(replacing: file.path) }
        do {
            try await pass(lease.generation, 0..<length) { bytes in
                try await store.executor.run(in: .maintenance) { try target.append(bytes) }
            }
            try await store.executor.run(in: .maintenance) { try target.finish() }
        } catch {
            target.discard()
            throw error
        }
    }

    /// Passes the bytes of a complete resource, or a range of them, to `write`, in order. Every byte is checked first.
    func export(_ key: CacheKey, _ range: Range<Int64>?, writing write: (Data) async throws -> Void) async throws {
        let (lease, length) = try await leaseComplete(key)
        defer { lease.end() }
        let whole = 0..<length
        try await pass(lease.generation, range?.clamped(to: whole) ?? whole, to: write)
    }

    private func leaseComplete(_ key: CacheKey) async throws -> (lease: Lease, length: Int64) {
        // An export needs all bytes, and does not allow any to be evicted.
        guard let lease = try await store.lease(key, user: ExportUser()) else {
            throw CacheError(.notStored, "nothing is stored under the key \(key)", key: key)
        }
        let generation = lease.generation
        guard let length = generation.description.length, generation.storedRanges.contains(0..<length) || length == 0
        else {
            defer { lease.end() }
            throw incomplete(generation)
        }
        return (lease, length)
    }

    private func pass(
        _ generation: Generation, _ range: Range<Int64>, to write: (Data) async throws -> Void
    ) async throws {
        // The disk or another program may have changed bytes since players read them. If checksums can't be written,
        // the bytes are trusted.
        if store.directory.access.isWritable { try? await store.flush() }
        generation.disk?.expireTrust()
        var offset = range.lowerBound
        while offset < range.upperBound {
            let part = offset..<min(range.upperBound, offset + 1 << 20)
            do {
                let bytes = try await store.executor.run(in: .maintenance) {
                    try store.checkOpen()
                    return try generation.read(part)
                }
                try await write(bytes)
                offset += Int64(bytes.count)
            } catch is MissingBytes {
                throw incomplete(generation)
            }
        }
    }

    private func incomplete(_ generation: Generation) -> CacheError {
        guard let length = generation.description.length else {
            return CacheError(
                .incomplete, "\(generation.url) is not complete: the length is unknown", key: generation.key)
        }
        let range = generation.storedRanges.firstMissingRange(in: 0..<length)
        let state =
            range.map { "is not complete: missing \($0.inWords)" }
            ?? "was not complete, because stored bytes were damaged; they have been fetched again, so try again"
        return CacheError(.incomplete, "\(generation.url) \(state)", key: generation.key, range: range)
    }
}

/// The user of a version during an export. It needs all bytes.
private final class ExportUser: GenerationUser {
    func offerEvictable(_ count: Int64, within place: ByteRangeSet, of generation: Generation) -> [Range<Int64>] { [] }
    func evicted(_ ranges: [Range<Int64>], kept: ByteRangeSet, of generation: Generation) {}
    func isFilling(_ generation: Generation) -> Bool { false }
    func invalidated(_ ranges: [Range<Int64>], of generation: Generation) {}
    func retired(_ generation: Generation) {}
}

/// A file that replaces an existing file when it is complete. Until then, it has a unique name in the same folder.
///
/// Errors name the file that is to be replaced.
final class ExportFile: Sendable {
    private let path: String
    private let partial: String
    private let descriptor: Int32

    /// Creates the file in the folder of `path`.
    ///
    /// - Throws: ``CacheError`` with code `storage`, or `invalidArgument` for an invalid path.
    init(replacing path: String) throws {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        if isThere, status.st_mode & S_IFMT != S_IFREG {
            throw CacheError(.storage, "“\(path)” can't be replaced: it is not a regular file")
        }
        let folder = (path as NSString).deletingLastPathComponent
        let name = ".spool-\(GenerationIdentifier().hex).partial"
        let partial = folder.isEmpty ? name : "\(folder)/\(name)"
        try checkPath(path)
        // The file never belongs to another user, and is never a link. It has the user's default permissions for new
        // files.
        let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        guard descriptor >= 0 else { throw CacheError.system("could not be created", path: path, errno: errno) }
        if isThere, fchmod(descriptor, status.st_mode & 0o7777) != 0 {
            let code = errno
            close(descriptor)
            unlink(partial)
            throw CacheError.system("could not be replaced by a file with the same mode", path: path, errno: code)
        }
        self.path = path
        self.partial = partial
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Writes the next bytes.
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

    /// Replaces the destination with the new file. After a loss of power, the name refers to either the old or the new
    /// file, and that file is complete.
    ///
    /// - Parameter synchronize: The system call that synchronizes a file to the device. Tests replace it.
    func finish(synchronizing synchronize: (Int32) -> Int32 = synchronizeToDevice) throws {
        while synchronize(descriptor) != 0 {
            guard errno == EINTR else {
                throw CacheError.system("could not be synchronized to the device", path: path, errno: errno)
            }
        }
        guard rename(partial, path) == 0 else {
            throw CacheError.system("could not be moved to its destination", path: path, errno: errno)
        }
        let folder = (path as NSString).deletingLastPathComponent
        let directory = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        defer { close(directory) }
        // A failure does not matter, because the new name reaches the device later.
        _ = synchronize(directory)
    }

    /// Removes the incomplete file.
    func discard() {
        // If the file can't be removed, nothing more can be done. A disk that fails to remove it would also have failed
        // to write it.
        unlink(partial)
    }
}
