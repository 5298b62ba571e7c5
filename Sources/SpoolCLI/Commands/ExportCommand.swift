import ArgumentParser
import Foundation
import Spool

/// `spool export`: copy a complete resource out of the cache.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Copy a complete resource into a file; every byte is checked on the way.",
        discussion: "Also while another process uses the cache.")

    struct Report: Encodable, Sendable {
        var url: String
        var file: String
        var bytes: Int64
    }

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL
    @Argument(help: "The file to write, or - for standard output.", completion: .file()) var file: String

    func validate() throws {
        if options.json, file == "-" { throw ValidationError("--json and - both want standard output") }
        if file.isEmpty { throw ValidationError("<file> is empty: give the file to write, or - for standard output") }
    }

    func run() async throws {
        guard let media = try await options.contents(of: url.key)?.first else { throw url.notStored }
        if file == "-" { return try await deliver(media) }
        let target = URL(fileURLWithPath: file)
        try options.refuseWithinCache(file)
        do {
            let cache = try await options.openNow()
            try await options.use(cache) { try await $0.export(url.key, to: target) }
        } catch let error as CacheError where error.code == .directoryInUse {
            let (key, path, encryptionKey) = (url.key, options.directory.path, try options.keys.key())
            let isDone = try await BlockingExecutor(threadLimit: 1).run {
                try StoredReader(path: path, key: key, encryptionKey: encryptionKey)?.export(to: target) != nil
            }
            guard isDone else { throw url.notStored }
        }
        let report = Report(url: media.address, file: target.path, bytes: media.length ?? media.storedByteCount)
        if options.json { return try Output.json(report) }
        try Output.line("\(ByteCount(bytes: report.bytes).text) written to \(file)")
    }

    /// Writes the media to standard output; needs nothing of the cache but to read it.
    private func deliver(_ media: StoredResource) async throws {
        let executor = BlockingExecutor(threadLimit: 1)
        let (key, path, encryptionKey) = (url.key, options.directory.path, try options.keys.key())
        let stored = try await executor.run { try StoredReader(path: path, key: key, encryptionKey: encryptionKey) }
        guard let stored else { throw url.notStored }
        let length = try stored.completeLength()
        let target = try await OutputTarget(file)
        var offset: Int64 = 0
        while offset < length {
            try Task.checkCancellation()
            let next = offset..<min(length, offset + 1 << 20)
            let bytes = try await executor.run { try stored.readComplete(next) }
            try await target.write(bytes)
            offset += Int64(bytes.count)
        }
        if Output.isWatched { Output.remark("\(ByteCount(bytes: length).text) of \(media.address) written") }
    }
}
