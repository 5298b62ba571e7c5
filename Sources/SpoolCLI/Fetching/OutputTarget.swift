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
    /// For pipes and terminals, whose other end may keep a writer waiting for ever.
    private let patience: Abandonable

    /// Opens the target: nil for none, `-` for standard output, else a path.
    ///
    /// A named pipe is opened when somebody reads it.
    ///
    /// - Throws: ``CommandFailure`` with code `unwritable` when the file can't be made; `CancellationError`.
    init(_ path: String?) async throws {
        let patience = Abandonable(name: "spool.pipe")
        self.patience = patience
        switch path {
        case nil: place = .nowhere
        case "-": place = .standardOutput
        case let path?:
            var status = stat()
            if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
                let handle = try await patience.run {
                    let descriptor = Foundation.open(path, O_WRONLY | O_CLOEXEC)
                    guard descriptor >= 0 else { throw Output.unwritable("“\(path)”", errno) }
                    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
                }
                place = .device(handle, path: path)
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
    /// - Throws: ``CommandFailure``: `unwritable`, `outputClosed`; `CancellationError`, where somebody else keeps it from
    ///   being written.
    func write(_ data: Data) async throws {
        switch place {
        case .nowhere: break
        case .standardOutput: try await patience.run { try Output.write(data) }
        case .device(let handle, let path):
            try await patience.run {
                let code = data.withUnsafeBytes { Output.write($0, to: handle.fileDescriptor) }
                if code != 0 { throw Output.unwritable("“\(path)”", code) }
            }
        case .file(let file): try await executor.run { try file.append(data) }
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
