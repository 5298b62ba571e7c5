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
    @Argument(help: "The file to write.", completion: .file()) var file: String

    func validate() throws {
        if file.isEmpty { throw ValidationError("<file> is empty: give the file to write") }
    }

    func run() async throws {
        let target = URL(fileURLWithPath: file)
        guard let media = try await options.contents(of: url.key)?.first else { throw url.notStored }
        try options.refuseWithinCache(file)
        do {
            let cache = try await options.openNow()
            try await options.use(cache) { try await $0.export(url.key, to: target) }
        } catch let error as CacheError where error.code == .directoryInUse {
            let (key, path) = (url.key, options.directory.path)
            let isDone = try await BlockingExecutor(threadLimit: 1).run {
                try StoredReader(path: path, key: key)?.export(to: target) != nil
            }
            guard isDone else { throw url.notStored }
        }
        let report = Report(url: media.address, file: target.path, bytes: media.length ?? media.storedByteCount)
        if options.json { return try Output.json(report) }
        try Output.line("\(ByteCount(bytes: report.bytes).text) written to \(file)")
    }
}
