import ArgumentParser
import Foundation
import Spool
import SpoolProxy

/// `spool info`: what the cache holds of one resource.
struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Show what the cache holds of one resource; also while another process uses it.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL

    func run() async throws {
        guard let media = try await options.contents(of: url.key)?.first else { throw url.notStored }
        if options.json { return try Output.json(MediaReport(media)) }
        let length = media.length.map { ByteCount(bytes: $0).text } ?? "unknown"
        try Output.line("URL        \(media.address)")
        try Output.line("key        \(media.key)")
        try Output.line("length     \(length)")
        try Output.line("type       \(media.mimeType ?? "unknown")")
        try Output.line("validator  \(media.validator ?? "none")")
        try Output.line("cached     \(ByteCount(bytes: media.storedByteCount).text), \(media.share)")
        let cells = RangeBar.cells(upTo: 60, in: Output.columns(of: STDOUT_FILENO).map { $0 - 13 })
        if cells > 0 {
            try Output.line("           ▕\(RangeBar.text(media.storedRanges, length: media.length, cells: cells))▏")
        }
        try Output.line("pinned     \(media.isPinned ? "yes" : "no")")
        try Output.line("last used  \(media.lastUsed.formatted(.iso8601))")
    }
}

extension MediaURL {
    /// The resource's name in the cache.
    var key: CacheKey { CacheKeyPolicy.url.key(for: url) }

    /// The error for what the cache does not have.
    var notStored: CacheError {
        CacheError(.notStored, "the cache holds nothing of \(MediaSource(url: url).displayAddress)")
    }
}
