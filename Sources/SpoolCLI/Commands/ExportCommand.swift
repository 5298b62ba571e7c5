import ArgumentParser
import Foundation
import Spool

/// `spool export`: copy a complete resource out of the cache.
struct ExportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Copy a complete resource into a file; every byte is checked on the way.")

    struct Report: Encodable, Sendable {
        var url: String
        var file: String
        var bytes: Int64
    }

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL
    @Argument(help: "The file to write.", completion: .file()) var file: String

    func run() async throws {
        let target = URL(fileURLWithPath: file)
        let media = try await options.withExistingCache { cache in
            guard let media = try await cache.contents(of: url.key) else { throw url.notStored }
            try await cache.export(url.key, to: target)
            return media
        }
        guard let media else { throw url.notStored }
        let report = Report(url: media.address, file: target.path, bytes: media.cachedBytes)
        if options.json { return try Output.json(report) }
        Output.line("\(ByteCount(bytes: report.bytes).text) written to \(file)")
    }
}
