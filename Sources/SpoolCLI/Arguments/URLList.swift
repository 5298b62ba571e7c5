import Foundation

/// A file of URLs, one on each line; blank lines and those that begin with `#` are passed over.
struct URLList {
    /// The URLs, in their order.
    private(set) var urls: [MediaURL] = []

    /// Some hundred thousand of them.
    private static let limit = 64 << 20

    /// Reads the file at `path`; `-` is standard input. Blocks, on a pipe until somebody has written it.
    ///
    /// - Throws: ``CommandFailure`` with code `usage`, which says nothing of what a line holds: it may have a token.
    init(path: String) throws {
        let data: Data
        do {
            let handle =
                path == "-" ? FileHandle.standardInput : try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            data = try handle.read(upToCount: Self.limit + 1) ?? Data()
        } catch {
            throw Self.failure(path, "can't be read")
        }
        guard data.count <= Self.limit else { throw Self.failure(path, "is too large: it may have 64 MiB") }
        // Some editors begin a file with a mark of its encoding.
        let isMarked = data.starts(with: [0xEF, 0xBB, 0xBF])
        let lines = String(decoding: isMarked ? data.dropFirst(3) : data, as: UTF8.self)
            .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let url = MediaURL(argument: line) else {
                throw Self.failure(path, "has no URL with a host in line \(index + 1)")
            }
            urls.append(url)
        }
        if urls.isEmpty { throw Self.failure(path, "has no URL") }
    }

    private static func failure(_ path: String, _ cause: String) -> CommandFailure {
        CommandFailure(.usage, "the list “\(path)” \(cause) (see “spool preload --help”)")
    }
}
