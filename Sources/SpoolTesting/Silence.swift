package import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What must not be found in a folder: words, and pieces of what was received.
package struct Silence: Sendable {
    private var words: [String]
    private var plain: [Data]

    /// - Parameters:
    ///   - words: Texts.
    ///   - plain: Bytes of which no piece of 16 with at least four different ones may be found; a piece of each 4 KiB is
    ///     looked for, at no round place.
    package init(words: [String] = [], plain: [Data] = []) {
        self.words = words
        self.plain = plain
    }

    /// What is found in the files of a folder, as sentences.
    package func broken(in folder: String) -> [String] {
        FolderTree.paths(under: folder).flatMap { name in
            FileManager.default.contents(atPath: folder + "/" + name).map { broken(in: $0, name) } ?? []
        }
    }

    /// What is found in one file, as sentences.
    package func broken(in data: Data, _ name: String) -> [String] {
        var found = words.filter { Self.contains(data, Data($0.utf8)) }.map { "“\($0)” in \(name)" }
        for (index, plain) in plain.enumerated() {
            for start in stride(from: 0, to: plain.count - 16, by: 4093) {
                let piece = plain.dropFirst(start).prefix(16)
                guard Set(piece).count >= 4, Self.contains(data, piece) else { continue }
                found.append("bytes \(start) and on of \(index) in \(name)")
                break
            }
        }
        return found
    }

    /// Foundation's own search takes seconds for each of these files in a debug build.
    private static func contains(_ data: Data, _ piece: Data) -> Bool {
        data.withUnsafeBytes { data in
            piece.withUnsafeBytes { piece in
                guard var start = data.baseAddress, let sought = piece.baseAddress, let first = piece.first else {
                    return false
                }
                let end = start + data.count
                while end - start >= piece.count, let found = memchr(start, Int32(first), end - start) {
                    start = UnsafeRawPointer(found)
                    if end - start >= piece.count, memcmp(start, sought, piece.count) == 0 { return true }
                    start += 1
                }
                return false
            }
        }
    }
}
