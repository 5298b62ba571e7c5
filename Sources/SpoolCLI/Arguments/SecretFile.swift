#if Tools
import CryptoExtras
import Foundation
import Spool

/// A file that may contain secrets: header fields, a key, a passphrase, or a list of URLs.
struct SecretFile {
    /// The contents of the file.
    let data: Data
    /// Whether other users of the machine can read the file.
    private let isReadableByOthers: Bool

    /// The reason that a file cannot be used, phrased as the end of a sentence.
    struct Failure: Error {
        var cause: String
    }

    /// Reads the file at `path`, or standard input for `-`. This blocks the thread. For a pipe, it blocks until the
    /// writer closes the pipe.
    ///
    /// - Parameter limit: The maximum number of bytes to read.
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
            // Foundation's description consists of error domains and numbers.
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            let code = cause.flatMap { $0.domain == NSPOSIXErrorDomain ? Int32(exactly: $0.code) : nil }
            throw Failure(cause: "can't be read: \(systemCause(code ?? EIO))")
        }
    }

    /// Writes a warning if other users can read the file.
    func warn(_ path: String) {
        guard isReadableByOthers else { return }
        Warning.readableSecret.report("other users can read “\(path)”; run “chmod 600” to restrict access")
    }
}

/// Functions that read keys from key files and passphrase files.
enum KeyFile {
    /// Returns the key from the given file, or `nil` if no file is given.
    ///
    /// - Throws: ``CommandFailure`` with code `keyFile` if the file cannot be read, or does not contain a key.
    static func key(keyFile: String?, passphraseFile: String?) throws -> EncryptionKey? {
        if let keyFile { return try key(in: keyFile) }
        return try passphraseFile.map { try passphrase(in: $0) }
    }

    private static func key(in path: String) throws -> EncryptionKey {
        let count = EncryptionKey.byteCount
        let bytes = try contents(of: path, "key", limit: count + 1)
        guard bytes.count == count else {
            let found = bytes.count > count ? "more" : bytes.count.grouped
            throw failure(path, "key", "must contain \(count) bytes, but contains \(found)")
        }
        return EncryptionKey(bytes: bytes)
    }

    private static func passphrase(in path: String) throws -> EncryptionKey {
        let bytes = try contents(of: path, "passphrase", limit: 4096)
        let passphrase = Data(bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") })
        guard !passphrase.isEmpty else { throw failure(path, "passphrase", "has an empty first line") }
        return EncryptionKey { salt in
            // With these parameters, scrypt uses 32 MiB and a parallelism of three. This combination is one of the
            // scrypt settings in OWASP's Password Storage Cheat Sheet.
            let key = try KDF.Scrypt.deriveKey(
                from: passphrase, salt: salt, outputByteCount: EncryptionKey.byteCount, rounds: 1 << 15, blockSize: 8,
                parallelism: 3)
            return key.withUnsafeBytes { Data($0) }
        }
    }

    private static func contents(of path: String, _ kind: String, limit: Int) throws -> Data {
        do {
            let file = try SecretFile(path: path, limit: limit)
            file.warn(path)
            return file.data
        } catch {
            throw failure(path, kind, error.cause)
        }
    }

    private static func failure(_ path: String, _ kind: String, _ cause: String) -> CommandFailure {
        CommandFailure(.keyFile, "the \(kind) file “\(path)” \(cause)")
    }
}
#endif
