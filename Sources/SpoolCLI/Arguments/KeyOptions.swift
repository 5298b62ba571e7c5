import ArgumentParser
import Foundation
import Spool

/// The key of an encrypted cache.
struct KeyOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The key of an encrypted cache: a file of 32 bytes.",
            discussion: "A cache that is begun is encrypted with it. “head -c 32 /dev/urandom” makes one.",
            valueName: "file"),
        completion: .file())
    var keyFile: String?

    @Option(
        help: ArgumentHelp(
            "In place of a key, a file whose first line is a passphrase.",
            discussion: "The key is derived with scrypt, which takes some tenths of a second.", valueName: "file"),
        completion: .file())
    var passphraseFile: String?

    func validate() throws {
        guard keyFile == nil || passphraseFile == nil else {
            throw ValidationError("--key-file and --passphrase-file both give the key: give one of them")
        }
    }

    /// The key; nil where none was given.
    ///
    /// - Throws: ``CommandFailure`` with code `keyFile` where the file can't be read, or holds no key.
    func key() throws -> EncryptionKey? { try KeyFile.key(keyFile: keyFile, passphraseFile: passphraseFile) }
}
