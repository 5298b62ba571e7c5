package import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// An empty folder in the system's temporary folder, which is removed when the test releases this object.
package final class ScratchDirectory: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "spool-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Returns the path of a file in the folder.
    package func file(_ name: String) -> String { path + "/" + name }

    /// The names of the files in the folder, sorted.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}

/// The contents of a folder and its subfolders, even while they change.
///
/// If a folder is removed during the search, `FileManager`'s enumerator ends early without an error, so its results may
/// lack unrelated files. This type skips only the removed folder.
package enum FolderTree {
    /// Returns the paths of all files and folders below `path`, relative to it and sorted.
    package static func paths(under path: String) -> [String] {
        // A removed folder, or a file, has no contents.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.sorted().flatMap { name in
            [name] + paths(under: "\(path)/\(name)").map { "\(name)/\($0)" }
        }
    }
}

/// Text and bytes that must not occur in the files of a folder.
package struct ForbiddenContent: Sendable {
    private var words: [String]
    private var plain: [Data]

    /// Creates a list of content to search for.
    ///
    /// - Parameters:
    ///   - words: The strings to search for.
    ///   - plain: The data of which no piece may occur in the files. A piece consists of 16 bytes with at least four
    ///     different values. The search uses one piece from each 4 KiB, at an unaligned offset.
    package init(words: [String] = [], plain: [Data] = []) {
        self.words = words
        self.plain = plain
    }

    /// Returns descriptions of the forbidden content in the files of a folder.
    package func violations(in folder: String) -> [String] {
        FolderTree.paths(under: folder).flatMap { name in
            FileManager.default.contents(atPath: folder + "/" + name).map { violations(in: $0, name) } ?? []
        }
    }

    /// Returns descriptions of the forbidden content in the data of a file.
    package func violations(in data: Data, _ name: String) -> [String] {
        var found = words.filter { Self.contains(data, Data($0.utf8)) }.map { "“\($0)” in \(name)" }
        for (index, plain) in plain.enumerated() {
            for start in stride(from: 0, to: plain.count - 16, by: 4093) {
                let piece = plain.dropFirst(start).prefix(16)
                guard Set(piece).count >= 4, Self.contains(data, piece) else { continue }
                found.append("bytes from offset \(start) of plaintext \(index) in \(name)")
                break
            }
        }
        return found
    }

    /// Returns whether `data` contains `piece`. Foundation's own search is not used, because it takes seconds per file
    /// in a debug build.
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
