import Foundation

/// A small file that may hold what others must not see: header fields, a key, a passphrase.
struct SecretFile {
    /// What is in it.
    let data: Data
    /// Whether other users of the machine can read it.
    let isReadableByOthers: Bool

    /// Why a file can't be used, as the end of a sentence.
    struct Failure: Error {
        var cause: String
    }

    /// Reads the file at `path`; `-` is standard input. Blocks, on a pipe until somebody has written it.
    ///
    /// - Parameter limit: How many bytes at most are read.
    /// - Throws: ``Failure``.
    init(path: String, limit: Int) throws(Failure) {
        let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(cause: "can't be read: \(systemCause(errno))") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Failure(cause: "can't be read: \(systemCause(errno))") }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw Failure(cause: "can't be read: it is a directory") }
        isReadableByOthers = status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o044 != 0
        do {
            data = try handle.read(upToCount: limit) ?? Data()
        } catch {
            // Foundation's own sentence is about its domains and numbers.
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            let code = cause.flatMap { $0.domain == NSPOSIXErrorDomain ? Int32(exactly: $0.code) : nil }
            throw Failure(cause: "can't be read: \(systemCause(code ?? EIO))")
        }
    }

    /// Says it where other users can read the file.
    func warn(_ path: String) {
        guard isReadableByOthers else { return }
        Warning.readableSecret.tell("other users can read “\(path)”: “chmod 600” keeps what is in it private")
    }
}
