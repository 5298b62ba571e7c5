import ArgumentParser
import Foundation
import Spool
import Synchronization

/// `spool rekey`: give the cache another key.
struct RekeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Encrypt the cache, give it another key, or make it plain again.",
        discussion: """
            The key that it has now is --key-file or --passphrase-file; a plain cache has none. Nothing is fetched again. \
            Broken off, it goes on whenever the cache is opened with the new key. The disk must have room for the largest \
            media file once more.
            """)

    struct Report: Encodable, Sendable {
        var resources: Int
        var bytes: Int64
        var encrypted: Bool
    }

    @OptionGroup var options: CacheOptions
    @Option(
        help: ArgumentHelp("The key that the cache is to have: a file of 32 bytes.", valueName: "file"),
        completion: .file())
    var newKeyFile: String?
    @Option(
        help: ArgumentHelp("In place of a new key, a file whose first line is a passphrase.", valueName: "file"),
        completion: .file())
    var newPassphraseFile: String?
    @Flag(help: "Make it plain: whoever can read the folder can read what is in it.") var plain = false

    func validate() throws {
        let given = [newKeyFile != nil, newPassphraseFile != nil, plain].filter { $0 }.count
        guard given == 1 else {
            throw ValidationError(
                "give the cache's new key with --new-key-file or --new-passphrase-file, or --plain for none; one of them"
            )
        }
    }

    func run() async throws {
        let former = try options.keys.key()
        let key = try KeyFile.key(keyFile: newKeyFile, passphraseFile: newPassphraseFile)
        try await MediaCache.rekey(options.directory, from: former, to: key)
        let cache = try await options.openNow { $0.encryptionKey = key }
        let report = try await options.use(cache) { try await finish($0) }
        if options.json { return try Output.json(report) }
        let done = "\(report.resources.counted("media file")), \(ByteCount(bytes: report.bytes).text)"
        try Output.line(plain ? "plain: \(done)" : "encrypted: \(done)")
    }

    private func finish(_ cache: MediaCache) async throws -> Report {
        let begun = try await cache.rekeyingLeft()
        let left = Mutex(begun)
        let line = LiveLine { _ in
            let now = left.withLock { $0 }
            let (done, bytes) = (begun.resources - now.resources, ByteCount(bytes: begun.bytes - now.bytes).text)
            return "\(done.grouped) of \(begun.resources.counted("media file")), \(bytes)"
        }
        do {
            try await cache.finishRekeying { resources, bytes in left.withLock { $0 = (resources, bytes) } }
            await line.end()
            let rest = try await cache.rekeyingLeft()
            guard rest.resources == 0 else {
                throw CacheError(
                    .storage,
                    "\(rest.resources.counted("media file")) of \(begun.resources.grouped) could not be sealed anew and stay as they were; the next opening goes on"
                )
            }
            return Report(resources: begun.resources, bytes: begun.bytes, encrypted: !plain)
        } catch {
            await line.end()
            throw error
        }
    }
}
