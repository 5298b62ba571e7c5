import CryptoExtras
import Foundation
import Spool

/// Keys and passphrases in files.
enum KeyFile {
    /// Of the one that is named; nil if none is.
    ///
    /// - Throws: ``CommandFailure`` with code `keyFile` where the file can't be read, or holds no key.
    static func key(keyFile: String?, passphraseFile: String?) throws -> EncryptionKey? {
        if let keyFile { return try key(in: keyFile) }
        return try passphraseFile.map { try passphrase(in: $0) }
    }

    private static func key(in path: String) throws -> EncryptionKey {
        let count = EncryptionKey.byteCount
        let bytes = try contents(of: path, "key", limit: count + 1)
        guard bytes.count == count else {
            let found = bytes.count > count ? "more" : bytes.count.grouped
            throw failure(path, "key", "must have \(count) bytes; it has \(found)")
        }
        return EncryptionKey(bytes: bytes)
    }

    private static func passphrase(in path: String) throws -> EncryptionKey {
        let bytes = try contents(of: path, "passphrase", limit: 4096)
        let passphrase = Data(bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") })
        guard !passphrase.isEmpty else { throw failure(path, "passphrase", "has nothing on its first line") }
        return EncryptionKey { salt in
            // 32 MiB, three times: one of the settings that OWASP's cheat sheet for stored passwords names for scrypt.
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
