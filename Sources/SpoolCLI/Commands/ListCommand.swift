import ArgumentParser
import ByteRanges
import Foundation
import Spool
import SpoolProxy

/// `spool ls`: what the cache holds.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls", abstract: "List what the cache holds; also while another process uses it.",
        discussion: """
            A stream of many files is one line, that of its playlist; --json lists each file, with the key of its playlist as \
            its presentation.
            """)

    @OptionGroup var options: CacheOptions

    func run() async throws {
        let found = try await options.contents()
        if found == nil { options.tellOfNoCache() }
        let contents = found ?? []
        if options.json { return try Output.json(contents.map(MediaReport.init)) }
        let cells = RangeBar.cells(upTo: 20, in: Output.columns(of: STDOUT_FILENO).map { $0 / 4 })
        for stored in StoredPresentation.presentations(in: contents) {
            let columns =
                (cells > 0 ? [stored.bar(cells: cells)] : []) + [
                    stored.share.padded(to: 9), ByteCount(bytes: stored.byteCount).text.padded(to: 9),
                    stored.media.isPinned ? "pinned" : "      ", stored.media.address,
                ]
            try Output.line(columns.joined(separator: "  "))
        }
    }
}

extension String {
    /// The text, with blanks before it up to so many characters.
    func padded(to count: Int) -> String { String(repeating: " ", count: max(0, count - self.count)) + self }
}
