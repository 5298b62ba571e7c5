#if Tools
import ArgumentParser
import Foundation
import Spool
import SpoolProxy

/// The URL of media at an origin: `http` or `https`, with a host.
struct MediaURL: Hashable, Sendable, ExpressibleByArgument {
    var url: URL

    init?(argument: String) {
        guard let url = URL(entered: argument), ["http", "https"].contains(url.scheme?.lowercased()),
            !(url.host ?? "").isEmpty
        else { return nil }
        self.url = url
    }
}

extension MediaURL {
    /// The cache key of the resource.
    var key: CacheKey { CacheKeyPolicy.url.key(for: url) }

    /// The error for a resource that is not in the cache.
    var notStored: CacheError {
        CacheError(.notStored, "\(MediaSource(url: url).redactedURL) is not in the cache", key: key)
    }
}

extension URL {
    /// Parses a URL from a command line. After the host, bytes that are not allowed in a URL are percent-encoded. Bytes
    /// that are already percent-encoded remain unchanged.
    ///
    /// Foundation's own parser encodes all percent signs in a string that contains an invalid byte.
    fileprivate init?(entered text: String) {
        guard let authority = text.range(of: "://")?.upperBound else { return nil }
        let start = text[authority...].firstIndex { "/?#".contains($0) } ?? text.endIndex
        let parts = text[start...].split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(string: text[..<start] + parts.map(\.encodingInvalidBytes).joined(separator: "#"))
    }
}

/// The media to play: a URL of any scheme, or a local file.
struct PlayableURL: Hashable, Sendable, ExpressibleByArgument {
    var url: URL

    /// Parses the text as a URL if it starts with a scheme, otherwise as a path.
    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        if let colon = argument.firstIndex(of: ":"), argument[colon...].hasPrefix("://") {
            guard let url = URL(entered: argument) else { return nil }
            if ["http", "https"].contains(url.scheme?.lowercased()), (url.host ?? "").isEmpty { return nil }
            self.url = url
        } else {
            url = URL(fileURLWithPath: argument)
        }
    }
}

/// A file of URLs, with one on each line. Blank lines and lines that start with `#` are ignored.
struct URLList {
    /// The URLs, in the order of the file.
    private(set) var urls: [MediaURL] = []

    /// The maximum size of the file, in bytes. The size is sufficient for several hundred thousand URLs.
    private static let limit = 64 << 20

    /// Reads the file at `path`, or standard input for `-`. This blocks the thread. For a pipe, it blocks until the
    /// writer closes the pipe.
    ///
    /// - Throws: ``CommandFailure`` with code `usage`. Its message never contains the text of a line, which may include
    ///   a token.
    init(path: String) throws {
        let data: Data
        do {
            data = try SecretFile(path: path, limit: Self.limit + 1).data
        } catch {
            throw Self.failure(path, error.cause)
        }
        guard data.count <= Self.limit else { throw Self.failure(path, "is too large; the limit is 64 MiB") }
        // Some editors write a byte order mark at the start of a file.
        let isMarked = data.starts(with: [0xEF, 0xBB, 0xBF])
        let lines = String(decoding: isMarked ? data.dropFirst(3) : data, as: UTF8.self)
            .split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            guard let url = MediaURL(argument: line) else {
                throw Self.failure(path, "is malformed: expected a URL with a host on line \(index + 1)")
            }
            urls.append(url)
        }
        if urls.isEmpty { throw Self.failure(path, "does not contain any URLs") }
    }

    private static func failure(_ path: String, _ cause: String) -> CommandFailure {
        CommandFailure(.usage, "the list “\(path)” \(cause) (see “spool preload --help”)")
    }
}
#endif
