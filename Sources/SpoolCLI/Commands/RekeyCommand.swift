#if Tools
import ArgumentParser
import Foundation
import Spool

/// `spool rekey`: encrypts the cache, changes its key, or decrypts it.
struct RekeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Encrypt the cache, change its key, or decrypt it.",
        discussion: """
            --key-file or --passphrase-file specifies the current key; omit both for an unencrypted cache. No other \
            process may use the cache. All media is copied, which needs as much free space as the cache uses. Until \
            the copy is complete, the cache keeps its current key. Nothing is fetched.
            """)

    struct Report: Encodable, Sendable {
        var resources: Int
        var bytes: Int64
        var encrypted: Bool
    }

    @OptionGroup var options: CacheOptions
    @Option(
        help: ArgumentHelp("A file with the new 32-byte key.", valueName: "file"),
        completion: .file())
    var newKeyFile: String?
    @Option(
        help: ArgumentHelp("A file whose first line is the new passphrase.", valueName: "file"),
        completion: .file())
    var newPassphraseFile: String?
    @Flag(help: "Decrypt the cache. Every user with access to the directory can then read the media.") var plain = false

    func validate() throws {
        let given = [newKeyFile != nil, newPassphraseFile != nil, plain].filter { $0 }.count
        guard given == 1 else {
            throw ValidationError(
                "give one of --new-key-file, --new-passphrase-file and --plain"
            )
        }
    }

    func run() async throws {
        let previous = try options.keys.key()
        let key = try KeyFile.key(keyFile: newKeyFile, passphraseFile: newPassphraseFile)
        let plan = try await MediaCache.rekey(options.directory, from: previous, to: key) { plan in
            let free = plan.freeSpace.map { "; \(ByteCount(bytes: $0).text) is free" } ?? ""
            Output.remark(
                "copying \(plan.resources.counted("resource")) needs \(ByteCount(bytes: plan.neededSpace).text) of free "
                    + "space\(free)")
        }
        let report = Report(resources: plan.resources, bytes: plan.bytes, encrypted: !plain)
        if options.json { return try Output.json(report) }
        let done = "\(report.resources.counted("resource")), \(ByteCount(bytes: report.bytes).text)"
        try Output.line(plain ? "decrypted: \(done)" : "encrypted: \(done)")
    }
}
#endif
