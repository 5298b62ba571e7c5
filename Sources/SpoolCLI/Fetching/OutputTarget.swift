import Foundation
import Spool

/// Where a fetched range goes: a file, standard output, or nowhere but the cache.
///
/// A regular file gets its name when it is whole; see ``PartialFile``. Devices and pipes are written at once. One task at
/// a time may call.
final class OutputTarget: Sendable {
    private enum Place: Sendable {
        case nowhere
        case standardOutput
        case device(FileHandle, path: String)
        case file(PartialFile)
    }

    private let place: Place
    private let executor = BlockingExecutor(threadLimit: 1, name: "spool.output")

    /// Opens the target: nil for none, `-` for standard output, else a path.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable` when the file can't be made.
    init(_ path: String?) throws {
        switch path {
        case nil: place = .nowhere
        case "-": place = .standardOutput
        case let path?:
            var status = stat()
            if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
                let descriptor = Foundation.open(path, O_WRONLY | O_CLOEXEC)
                guard descriptor >= 0 else { throw Output.unwritable("“\(path)”", errno) }
                place = .device(FileHandle(fileDescriptor: descriptor, closeOnDealloc: true), path: path)
            } else {
                place = .file(try PartialFile(replacing: path))
            }
        }
    }

    /// Whether bytes go nowhere but into the cache.
    var isCacheOnly: Bool {
        if case .nowhere = place { true } else { false }
    }

    /// Writes the next bytes.
    ///
    /// - Throws: ``CommandFailure``: `unwritable`, `outputClosed`.
    func write(_ data: Data) async throws {
        if case .nowhere = place { return }
        try await executor.run { [place] in
            switch place {
            case .nowhere: break
            case .standardOutput: try Output.write(data)
            case .device(let handle, let path):
                var rest = data[...]
                while !rest.isEmpty {
                    let count = rest.withUnsafeBytes { bytes in
                        Foundation.write(handle.fileDescriptor, bytes.baseAddress, bytes.count)
                    }
                    if count < 0, errno == EINTR { continue }
                    guard count > 0 else { throw Output.unwritable("“\(path)”", errno) }
                    rest = rest.dropFirst(count)
                }
            case .file(let file): try file.append(data)
            }
        }
    }

    /// Gives the file its name.
    func finish() async throws {
        guard case .file(let file) = place else { return }
        try await executor.run { try file.finish() }
    }

    /// Removes what was written so far.
    func discard() {
        if case .file(let file) = place { file.discard() }
    }
}
