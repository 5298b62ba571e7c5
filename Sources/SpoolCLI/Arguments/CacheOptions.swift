#if Tools
import ArgumentParser
import Foundation
import Spool

/// The options of every command: the cache directory, its key, and the output format.
struct CacheOptions: ParsableArguments {
    @Option(
        name: .customLong("cache"),
        help: ArgumentHelp(
            "The cache directory.",
            discussion: "The default is $SPOOL_CACHE, or the platform's cache folder.", valueName: "dir"),
        completion: .directory)
    var cachePath: String?

    @OptionGroup var keys: KeyOptions

    @Flag(help: "Print one JSON value to standard output, and nothing else.")
    var json = false

    @Flag(help: "Write a log to standard error.")
    var verbose = false

    /// The cache that this process has open, while it runs a command for another process.
    @TaskLocal static var serverCache: MediaCache?

    /// The cache directory.
    var directory: URL {
        let environment = ProcessInfo.processInfo.environment
        return CacheLocation.directory(
            option: cachePath, environment: environment, home: CacheLocation.home(environment: environment))
    }
}

/// The rules for finding the cache directory.
enum CacheLocation {
    /// Returns the user's home directory: `HOME` if set, otherwise the one in the system's user database.
    static func home(environment: [String: String]) -> URL {
        if let home = environment["HOME"], home.hasPrefix("/") { return URL(fileURLWithPath: home, isDirectory: true) }
        return URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
    }

    /// Returns the cache directory: the option's value if set, otherwise `SPOOL_CACHE`, otherwise the platform's
    /// folder.
    ///
    /// Empty strings are treated as unset.
    static func directory(option: String?, environment: [String: String], home: URL) -> URL {
        func path(_ text: String?) -> URL? {
            guard let text, !text.isEmpty else { return nil }
            return URL(fileURLWithPath: text, isDirectory: true)
        }
        if let chosen = path(option) ?? path(environment["SPOOL_CACHE"]) { return chosen }
        #if canImport(Darwin)
        return home.appendingPathComponent("Library/Caches/spool", isDirectory: true)
        #else
        // The XDG Base Directory Specification requires relative paths to be ignored.
        let base = environment["XDG_CACHE_HOME"].flatMap { $0.hasPrefix("/") ? path($0) : nil }
        return (base ?? home.appendingPathComponent(".cache")).appendingPathComponent("spool", isDirectory: true)
        #endif
    }
}

/// The key of an encrypted cache.
struct KeyOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A file with the 32-byte key of an encrypted cache.",
            discussion: "A new cache is encrypted with it. “head -c 32 /dev/urandom > FILE” creates a key.",
            valueName: "file"),
        completion: .file())
    var keyFile: String?

    @Option(
        help: ArgumentHelp(
            "A file whose first line is a passphrase, instead of a key.",
            discussion: "The key is derived with scrypt, which takes a few tenths of a second.", valueName: "file"),
        completion: .file())
    var passphraseFile: String?

    func validate() throws {
        guard keyFile == nil || passphraseFile == nil else {
            throw ValidationError("--key-file and --passphrase-file both specify the key; use only one of them")
        }
    }

    /// Reads the key.
    ///
    /// - Returns: `nil` if no key file or passphrase file is given.
    /// - Throws: ``CommandFailure`` with code `keyFile` if the file cannot be read, or does not contain a key.
    func key() throws -> EncryptionKey? { try KeyFile.key(keyFile: keyFile, passphraseFile: passphraseFile) }
}
#endif
