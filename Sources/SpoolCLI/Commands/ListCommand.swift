import ArgumentParser
import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// `spool ls`: what the cache holds.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls", abstract: "List what the cache holds; also while another process uses it.")

    @OptionGroup var options: CacheOptions

    func run() async throws {
        let found = try await options.contents()
        if found == nil { options.tellOfNoCache() }
        let contents = found ?? []
        if options.json { return try Output.json(contents.map(MediaReport.init)) }
        let cells = RangeBar.cells(upTo: 20, in: Output.columns(of: STDOUT_FILENO).map { $0 / 4 })
        for media in contents {
            let bar = RangeBar.text(media.storedRanges, length: media.length, cells: cells)
            let columns =
                (cells > 0 ? [bar] : []) + [
                    media.share.padded(to: 9), ByteCount(bytes: media.storedByteCount).text.padded(to: 9),
                    media.isPinned ? "pinned" : "      ", media.address,
                ]
            try Output.line(columns.joined(separator: "  "))
        }
    }
}

extension String {
    /// The text, with blanks before it up to so many characters.
    func padded(to count: Int) -> String { String(repeating: " ", count: max(0, count - self.count)) + self }
}
