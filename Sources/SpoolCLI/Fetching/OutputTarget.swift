import Foundation
import Spool

/// Where a fetched range goes: a file, standard output, or nowhere but the cache.
///
/// A regular file gets its name when it is whole; until then it is written beside, as `NAME.partial`, and what an
/// interruption leaves of that is removed, since the bytes are in the cache. Devices and pipes are written at once.
/// One task at a time may call.
final class OutputTarget: Sendable {
    private let handle: FileHandle?
    private let partial: String?
    private let path: String
    private let executor = BlockingExecutor(threadLimit: 1, name: "spool.output")

    /// Opens the target: nil for none, `-` for standard output, else a path.
    ///
    /// - Throws: `CacheError` with code `.storage` when the file can't be made.
    init(_ path: String?) throws {
        self.path = path ?? ""
        switch path {
        case nil:
            (handle, partial) = (nil, nil)
        case "-":
            (handle, partial) = (.standardOutput, nil)
        case let path?:
            let isPlain = Self.isPlainFile(path)
            let target = isPlain ? path + ".partial" : path
            let descriptor = Foundation.open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else {
                throw CacheError(.storage, "\(target) can't be written: \(String(cString: strerror(errno)))")
            }
            handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            partial = isPlain ? target : nil
        }
    }

    /// Writes the next bytes.
    func write(_ data: Data) async throws {
        guard let handle else { return }
        try await executor.run { [path] in
            do {
                try handle.write(contentsOf: data)
            } catch {
                let name = path == "-" ? "standard output" : path
                throw CacheError(.storage, "\(name) can't be written: \(error.localizedDescription)", underlying: error)
            }
        }
    }

    /// Gives the file its name.
    func finish() async throws {
        guard let handle, path != "-" else { return }
        try await executor.run { [path, partial] in
            try handle.close()
            guard let partial, rename(partial, path) != 0 else { return }
            throw CacheError(.storage, "\(path) can't be written: \(String(cString: strerror(errno)))")
        }
    }

    /// Removes what was written so far.
    func discard() {
        if let partial { unlink(partial) }
    }

    /// Whether the path names a regular file, or nothing yet.
    private static func isPlainFile(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return true }
        return status.st_mode & S_IFMT == S_IFREG
    }
}
