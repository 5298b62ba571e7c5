#if Tools
import ArgumentParser
import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// `spool ls`: lists the contents of the cache.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls", abstract: "List the contents of the cache, even while another process uses it.",
        discussion: """
            A stream with several files is shown on one line. With --json, each file is listed separately, and its \
            streamKey is the key of the playlist or MPD.
            """)

    @OptionGroup var options: CacheOptions

    func run() async throws {
        let found = try await options.contents()
        if found == nil { options.reportMissingCache() }
        let contents = found ?? []
        if options.json { return try Output.json(contents.map(MediaReport.init)) }
        let cells = RangeBar.cells(upTo: 20, in: Output.columns(of: STDOUT_FILENO).map { $0 / 4 })
        for stored in StoredPresentation.presentations(in: contents) {
            let columns =
                (cells > 0 ? [stored.bar(cells: cells)] : []) + [
                    stored.share.padded(to: 9), ByteCount(bytes: stored.byteCount).text.padded(to: 9),
                    stored.media.isPinned ? "pinned" : "      ", stored.media.redactedURL,
                ]
            try Output.line(columns.joined(separator: "  "))
        }
    }
}

extension String {
    /// Returns the text, padded with spaces on the left to at least `count` characters.
    func padded(to count: Int) -> String { String(repeating: " ", count: max(0, count - self.count)) + self }
}

/// `spool info`: shows the stored part of one resource.
struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Show the stored part of a resource, even while another process uses it.")

    @OptionGroup var options: CacheOptions
    @Argument(help: "The URL of the media.") var url: MediaURL

    func run() async throws {
        guard let media = try await options.contents(of: url.key)?.first else { throw url.notStored }
        if options.json { return try Output.json(MediaReport(media)) }
        let length = media.length.map { ByteCount(bytes: $0).text } ?? "unknown"
        try Output.line("URL        \(media.redactedURL)")
        try Output.line("key        \(media.key)")
        try Output.line("length     \(length)")
        try Output.line("type       \(media.contentType ?? "unknown")")
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

extension StoredPresentation {
    /// The stored share, as text for a narrow column. For a stream, it shows how many of the stored files are complete.
    var share: String { parts.isEmpty ? media.share : "\(completeFileCount)/\(fileCount)" }

    /// Returns the stored share as a bar of `cells` characters.
    func bar(cells: Int) -> String {
        guard !parts.isEmpty else { return RangeBar.text(media.storedRanges, length: media.length, cells: cells) }
        return RangeBar.text(ByteRangeSet(0..<Int64(completeFileCount)), length: Int64(fileCount), cells: cells)
    }
}

extension StoredResource {
    /// The stored share, as text for a narrow column: `complete`, `42 %`, or a number of bytes if the length is
    /// unknown.
    var share: String {
        if isComplete { return "complete" }
        guard let length, length > 0 else { return ByteCount(bytes: storedByteCount).text }
        return "\(min(99, storedByteCount * 100 / length)) %"
    }
}
#endif
